package kubeletplugin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

// serveHealth answers /healthz while the process can take its locks, and /readyz
// once the GPUs are known. Without an address it does nothing.
func serveHealth(ctx context.Context, addr string, p *Plugin) {
	if addr == "" {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		p.ready()
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.ready() {
			http.Error(w, "the GPUs of this node are not known yet", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		klog.FromContext(ctx).Error(err, "Health server ended", "address", addr)
	}
}
