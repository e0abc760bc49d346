module github.com/fiducial-dev/fiducial/provider/sse

go 1.26.0

require github.com/tmaxmax/go-sse v0.12.0
