package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
)

// structure is a Go struct as its JSON decoder and encoder know it. A field is written as
//
//	<JSON name> <!><Go type>
//
// in the order of the struct, where ! stands before a field that is written even when nothing is set. Without
// its * the type is what Go's decoder calls it in its errors.
type structure struct {
	name   string
	fields []string
}

// writeStructures writes a struct per line, named as in OpenAPI.
func writeStructures(file, release string, kinds []kind) error {
	found := map[string]structure{}
	for _, each := range kinds {
		collectStructure(each.goType, found)
	}
	all := []structure{}
	for _, each := range found {
		all = append(all, each)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	lines := []string{fmt.Sprintf("{\"release\":%q,\"structures\":{", release)}
	for i, each := range all {
		lines = append(lines, fmt.Sprintf("%q:%q%s", each.name, strings.Join(each.fields, ";"), comma(i, len(all))))
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n}}\n"), 0o644)
}

// openAPIName turns k8s.io/api/core/v1.Pod into io.k8s.api.core.v1.Pod.
func openAPIName(goType reflect.Type) string {
	host, path, _ := strings.Cut(goType.PkgPath(), "/")
	labels := strings.Split(host, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + goType.Name()
}

func collectStructure(goType reflect.Type, found map[string]structure) {
	for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice || goType.Kind() == reflect.Map {
		goType = goType.Elem()
	}
	if goType.Kind() != reflect.Struct || special[goType] != "" {
		return
	}
	name := openAPIName(goType)
	if _, ok := found[name]; ok {
		return
	}
	found[name] = structure{}
	found[name] = structure{name, fieldsOf(goType, found)}
}

func fieldsOf(goType reflect.Type, found map[string]structure) []string {
	fields := []string{}
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if strings.Contains(options, "inline") || (name == "" && field.Anonymous) {
			fields = append(fields, fieldsOf(field.Type, found)...)
			continue
		}
		collectStructure(field.Type, found)
		kept := ""
		isStruct := field.Type.Kind() == reflect.Struct
		if !strings.Contains(options, "omitzero") && (isStruct || !strings.Contains(options, "omitempty")) {
			kept = "!"
		}
		fields = append(fields, name+" "+kept+field.Type.String())
	}
	return fields
}
