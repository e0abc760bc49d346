module github.com/fiducial-dev/fiducial/kicad

go 1.26

require (
	github.com/fiducial-dev/fiducial v0.0.0
	github.com/google/go-cmp v0.7.0
)

replace github.com/fiducial-dev/fiducial => ..
