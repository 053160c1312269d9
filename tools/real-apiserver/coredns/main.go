// CoreDNS with the plugins of a cluster's Corefile alone: those of clouds would treble its build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order in which a query passes the plugins (CoreDNS's plugin.cfg).
	dnsserver.Directives = []string{"prometheus", "errors", "health", "ready", "cache", "kubernetes", "forward"}
	coremain.Run()
}
