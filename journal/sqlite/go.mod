module github.com/fiducial-dev/fiducial/journal/sqlite

go 1.26

require github.com/fiducial-dev/fiducial v0.0.0

replace github.com/fiducial-dev/fiducial => ../..
