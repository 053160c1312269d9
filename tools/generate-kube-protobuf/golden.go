package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// sample is one object in both forms, as the real types write it.
type sample struct {
	Name     string `json:"name"`
	Object   any    `json:"object"`
	Protobuf []byte `json:"protobuf"`
}

// writeGolden writes a line of JSON per sample: of every kind an object with every field set, and one
// in which every pointer points to a zero; and the frame of a watch.
func writeGolden(file string, kinds []kind) error {
	scheme := runtime.NewScheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	text := &bytes.Buffer{}
	for _, each := range kinds {
		if each.apiVersion == "*" && each.kind == "WatchEvent" {
			continue
		}
		for _, values := range []filler{{full: true}, {full: false}} {
			if values.full && strings.HasSuffix(each.kind, "List") {
				continue // The items are samples already.
			}
			name := each.name() + ", every field set"
			if !values.full {
				name = each.name() + ", zeros"
			}
			object := values.object(each)
			bytes, err := runtime.Encode(serializer, object)
			if err != nil {
				return fmt.Errorf("encoding %s: %w", name, err)
			}
			if err := json.NewEncoder(text).Encode(sample{name, object, bytes}); err != nil {
				return fmt.Errorf("encoding %s: %w", name, err)
			}
		}
	}
	frame, err := watchFrame(serializer)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(text).Encode(frame); err != nil {
		return err
	}
	return writeGzip(file, text.Bytes())
}

func watchFrame(serializer runtime.Encoder) (*sample, error) {
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "web", ResourceVersion: "7"}}
	pod.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	raw, err := runtime.Encode(serializer, pod)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	event := &meta.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw}}
	frame := &bytes.Buffer{}
	framed := protobuf.LengthDelimitedFramer.NewFrameWriter(frame)
	if err := protobuf.NewRawSerializer(scheme, scheme).Encode(event, framed); err != nil {
		return nil, err
	}
	return &sample{"watch frame", map[string]any{"type": "ADDED", "object": pod}, frame.Bytes()}, nil
}

func writeGzip(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	packed := &bytes.Buffer{}
	writer, err := gzip.NewWriterLevel(packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(text); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o644)
}
