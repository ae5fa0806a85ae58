// Command probe is the container of the cluster test: it says hello and waits,
// or with the argument "once" ends at once.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	fmt.Println("hello from", os.Getenv("NODE_NAME"))
	if len(os.Args) > 1 && os.Args[1] == "once" {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
}
