package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/kuji-dev/kuji/server"
)

// tracesTimeout is how long the last spans may take when the server stops.
const tracesTimeout = 5 * time.Second

// openTraces returns what sends a span of each call to the collector that --otlp-endpoint or OpenTelemetry's
// variables name; nil: none does. The variables also set headers, sampling and the like.
func openTraces(endpoint string, getenv func(string) string, log *slog.Logger) (i connect.Interceptor, closeTraces func() error, err error) {
	off := getenv("OTEL_SDK_DISABLED") == "true" || getenv("OTEL_TRACES_EXPORTER") == "none"
	if endpoint == "" && (off || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "") {
		return nil, nothing, nil
	}
	var options []otlptracehttp.Option
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, nil, usagef("--otlp-endpoint %q: expected http://HOST:PORT or https://HOST:PORT of a collector that takes OTLP over HTTP", withoutSecrets(endpoint))
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" { // which OpenTelemetry would leave out
			return nil, nil, usagef("--otlp-endpoint %q: expected a URL without user, ? and #; a collector's key goes into $OTEL_EXPORTER_OTLP_HEADERS, such as api-key=KEY", withoutSecrets(endpoint))
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.JoinPath("v1", "traces").String()))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces: some spans are lost", "error", err) }))
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, nil, usagef("--otlp-endpoint: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "kuji"), attribute.String("service.version", version())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, nil, usagef("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	i, err = otelconnect.NewInterceptor(otelconnect.WithTracerProvider(provider),
		otelconnect.WithPropagator(propagation.TraceContext{}), otelconnect.WithTrustRemote(),
		otelconnect.WithoutMetrics(),
		otelconnect.WithFilter(func(_ context.Context, spec connect.Spec) bool {
			return !strings.HasPrefix(spec.Procedure, "/"+grpchealth.HealthV1ServiceName+"/")
		}))
	if err != nil {
		return nil, nil, errors.Join(err, provider.Shutdown(ctx))
	}
	return i, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), tracesTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("traces: the last spans are lost", "error", err)
		}
		return nil
	}, nil
}

// watched adds the access log and traces to a server's options. end writes what they have left.
func (f *serveFlags) watched(a *app, o *server.Options) (reopen, end func() error, err error) {
	o.SlowRequests = f.logs.slow
	i, endTraces, err := openTraces(f.otlp, a.getenv, o.Logger)
	if err != nil {
		return nil, nil, err
	}
	if i != nil {
		o.Interceptors = slices.Concat(o.Interceptors, []connect.Interceptor{i})
	}
	access, reopen, endAccess, err := f.logs.openAccess(a, o.Logger)
	if err != nil {
		return nil, nil, errors.Join(err, endTraces())
	}
	o.AccessLog = access
	return reopen, func() error { return errors.Join(endTraces(), endAccess()) }, nil
}
