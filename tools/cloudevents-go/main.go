// Program: an ordinary user of the CloudEvents SDK for Go. `publish URL` sends an event in binary and one in structured mode, and prints the
// status of each; `receive` listens, prints its address, and then each event that it gets as a line of JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "publish" {
		return publish(args[1])
	}
	if len(args) == 1 && args[0] == "receive" {
		return receive()
	}
	return fmt.Errorf("usage: publish URL | receive")
}

func publish(url string) error {
	client, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(url))
	if err != nil {
		return err
	}
	modes := []struct {
		name string
		with func(context.Context) context.Context
	}{
		{"binary", cloudevents.WithEncodingBinary},
		{"structured", cloudevents.WithEncodingStructured},
	}
	for _, mode := range modes {
		event := cloudevents.NewEvent()
		event.SetID("go-" + mode.name)
		event.SetSource("shop")
		event.SetType("order.created.v1")
		// It neither encodes nor decodes values of headers (HTTP Protocol Binding, 3.1.3.2): plain text only.
		event.SetExtension("comment", "gift")
		event.SetTime(time.Unix(1767225600, 0))
		if err := event.SetData(cloudevents.ApplicationJSON, map[string]any{"amount": 3, "text": "ä"}); err != nil {
			return err
		}
		result := client.Send(mode.with(context.Background()), event)
		var answer *cehttp.Result
		if !cloudevents.ResultAs(result, &answer) {
			return fmt.Errorf("%s: %w", mode.name, result)
		}
		fmt.Println(answer.StatusCode)
	}
	return nil
}

func receive() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	protocol, err := cloudevents.NewHTTP()
	if err != nil {
		return err
	}
	handler, err := cloudevents.NewHTTPReceiveHandler(context.Background(), protocol, func(event cloudevents.Event) {
		text, err := json.Marshal(event)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		fmt.Println(string(text))
	})
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return http.Serve(listener, handler)
}
