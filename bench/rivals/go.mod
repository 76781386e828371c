module github.com/kuji-dev/kuji/bench/rivals

go 1.26.0

replace github.com/kuji-dev/kuji => ../..

require (
	connectrpc.com/connect v1.21.1
	github.com/jackc/pgx/v5 v5.12.0
	github.com/kuji-dev/kuji v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.23.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
