package metrics

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options of a Registry.
type Options struct {
	Snapshot func() Snapshot // called at every scrape, from any goroutine; required
	Version  string          // of the product, for edgecam_build_info
	Revision string          // of its source; "" is left empty
	Logger   *slog.Logger    // for scrapes that go wrong; it defaults to discarding
}

// Registry holds the product's metrics, those of the Go runtime and of the
// process, and nothing that other code registered.
type Registry struct {
	reg *prometheus.Registry
	log *slog.Logger
}

// New returns a registry.
func New(o Options) (*Registry, error) {
	if o.Snapshot == nil {
		return nil, errors.New("new metrics: no Snapshot")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "edgecam_build_info",
		Help: "Always 1; the labels say what is running.",
	}, []string{"version", "revision", "goversion", "goarch"})
	build.WithLabelValues(o.Version, o.Revision, runtime.Version(), runtime.GOARCH).Set(1)

	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		newCollector(o.Snapshot),
		build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("new metrics: %w", err)
		}
	}
	return &Registry{reg: reg, log: o.Logger}, nil
}

// Gatherer gives the metrics to code other than Handler.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.reg }

// Handler answers scrapes. A metric that cannot be made is left out and
// logged: the others still arrive.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.reg, promhttp.HandlerOpts{
		ErrorLog:            scrapeLog{r.log},
		ErrorHandling:       promhttp.ContinueOnError,
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: 4,
	})
}

// scrapeLog takes what promhttp wants to print.
type scrapeLog struct{ log *slog.Logger }

// Println logs v as one record.
func (l scrapeLog) Println(v ...any) {
	l.log.Warn("collect metrics", "err", fmt.Sprint(v...))
}
