// Writes the protobuf form of the built-in kinds for the embedded API server: which number and type
// each field of each message has, and what Go leaves out of JSON. Run it whenever
// tools/generate-kube-schema has run, from this directory:
//
//	go run .
//
// It reads the served kinds from packages/apiserver/src/generated/kube-schema.json, whose release must
// be that of the modules in go.mod, and writes
//   - packages/apiserver/src/generated/protobuf-messages.json: the messages, one per line;
//   - packages/apiserver/src/generated/go-structures.json: the structs, as JSON knows them, one per line;
//   - packages/apiserver/src/protobuf/testdata/golden.json.gz: objects of every kind with every field
//     set, as JSON and as bytes, both written by the real types.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

const apiserver = "../../packages/apiserver/src"

// served is the part of kube-schema.json that says which kinds there are.
type served struct {
	Release       string `json:"release"`
	GroupVersions []struct {
		Group     string `json:"group"`
		Version   string `json:"version"`
		Resources []struct {
			Kind string `json:"kind"`
		} `json:"resources"`
	} `json:"groupVersions"`
}

func main() {
	log.SetFlags(0)
	schema, err := readServed(filepath.Join(apiserver, "generated", "kube-schema.json"))
	if err != nil {
		log.Fatal(err)
	}
	kinds, err := kindsOf(schema)
	if err != nil {
		log.Fatal(err)
	}
	messages := messagesOf(kinds)
	if err := writeMessages(filepath.Join(apiserver, "generated", "protobuf-messages.json"), schema.Release, kinds, messages); err != nil {
		log.Fatal(err)
	}
	if err := writeStructures(filepath.Join(apiserver, "generated", "go-structures.json"), schema.Release, kinds); err != nil {
		log.Fatal(err)
	}
	if err := writeGolden(filepath.Join(apiserver, "protobuf", "testdata", "golden.json.gz"), kinds); err != nil {
		log.Fatal(err)
	}
}

func readServed(file string) (*served, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	schema := &served{}
	if err := json.Unmarshal(text, schema); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	wanted := strings.Replace(schema.Release, "v1.", "v0.", 1)
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		switch module.Path {
		case "k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator":
			if module.Version != wanted {
				return nil, fmt.Errorf("%s is %s in go.mod, but kube-schema.json is of %s: go get %s@%s", module.Path, module.Version, schema.Release, module.Path, wanted)
			}
		}
	}
	return schema, nil
}

// writeMessages writes a message per line, so that a new release shows as a readable difference.
func writeMessages(file, release string, kinds []kind, messages []message) error {
	lines := []string{fmt.Sprintf("{\"release\":%q,\"kinds\":{", release)}
	for i, each := range kinds {
		lines = append(lines, fmt.Sprintf("%q:%q%s", each.name(), nameOf(each.goType), comma(i, len(kinds))))
	}
	lines = append(lines, "},\"messages\":{")
	for i, each := range messages {
		lines = append(lines, fmt.Sprintf("%q:%q%s", each.name, strings.Join(each.fields, ";"), comma(i, len(messages))))
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n}}\n"), 0o644)
}

func comma(i, length int) string {
	if i == length-1 {
		return ""
	}
	return ","
}
