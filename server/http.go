package server

import (
	"crypto/tls"
	"log/slog"
	"net/http"

	"github.com/kuji-dev/kuji/server/internal/admission"
)

// NewHTTP returns an HTTP server for a handler that passes requests on to a Server, of this process
// or another one, with the timeouts and limits of Server.Serve. Connections are not counted.
func NewHTTP(h http.Handler, l Limits, conf *tls.Config, log *slog.Logger) (*http.Server, error) {
	l, err := l.withDefaults()
	if err != nil {
		return nil, err
	}
	return newHTTP(h, &l, conf, log), nil
}

// newHTTP configures an HTTP server. Every timeout is set: a half-open client holds a connection
// for so long.
func newHTTP(h http.Handler, l *Limits, conf *tls.Config, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	if conf != nil {
		protocols.SetHTTP2(true)
		conf = conf.Clone()
	} else {
		protocols.SetUnencryptedHTTP2(true) // gRPC without TLS
	}
	return &http.Server{
		Handler:           endFramedTwice(h),
		TLSConfig:         conf,
		ConnContext:       admission.WithConn,
		Protocols:         protocols,
		ReadHeaderTimeout: l.HeaderTimeout,
		ReadTimeout:       l.ReadTimeout,
		WriteTimeout:      l.WriteTimeout,
		IdleTimeout:       l.IdleTimeout,
		MaxHeaderBytes:    l.HeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: l.Streams,
			SendPingTimeout:      l.IdleTimeout / 2, // finds half-open connections
			PingTimeout:          l.HeaderTimeout,
			WriteByteTimeout:     l.WriteTimeout,
		},
		// Mistakes of single clients at this level do not concern an operator.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// endFramedTwice ends the connection after a request that may give the length of its body in two
// ways (RFC 9112, 6.1): a proxy may have read the other one. net/http does not say whether a
// chunked request has a length too, or one of HTTP/1.0 has chunks.
func endFramedTwice(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0) {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}
