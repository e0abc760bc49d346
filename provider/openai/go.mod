module github.com/fiducial-dev/fiducial/provider/openai

go 1.26.0

require (
	github.com/fiducial-dev/fiducial v0.0.0
	github.com/fiducial-dev/fiducial/provider/sse v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/openai/openai-go/v3 v3.99.0
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/tmaxmax/go-sse v0.12.0 // indirect
)

replace (
	github.com/fiducial-dev/fiducial => ../..
	github.com/fiducial-dev/fiducial/provider/sse => ../sse
)
