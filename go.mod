module github.com/fiducial-dev/fiducial

go 1.26
