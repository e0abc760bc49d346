module github.com/fiducial-dev/fiducial/provider/gemini

go 1.26.0

require (
	github.com/fiducial-dev/fiducial v0.0.0
	github.com/fiducial-dev/fiducial/provider/sse v0.0.0
	github.com/google/go-cmp v0.7.0
)

require github.com/tmaxmax/go-sse v0.12.0 // indirect

replace (
	github.com/fiducial-dev/fiducial => ../..
	github.com/fiducial-dev/fiducial/provider/sse => ../sse
)
