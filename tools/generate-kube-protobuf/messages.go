package main

import (
	"fmt"
	"path"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// message is a Go struct as the wire knows it. A field is written as
//
//	<number> <JSON name> <type>
//
// where the name is "." for a struct whose fields JSON has inline, and the type is a message's name or
// one of the small words below, after
//
//	[]  for a list
//	{}  for a map, whose keys are strings
//	*   for a pointer: absent and zero differ
//	!   for a zero that JSON tells as well (no omitempty)
type message struct {
	name   string
	fields []string
}

// Types whose JSON is not that of their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():                                  "time",
	reflect.TypeFor[meta.MicroTime]():                             "microTime",
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[intstr.IntOrString]():                         "intOrString",
	reflect.TypeFor[meta.FieldsV1]():                              "json",
	reflect.TypeFor[runtime.RawExtension]():                       "json",
	reflect.TypeFor[apiextensions.JSON]():                         "json",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "schemaOrBool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "schemaOrArray",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "schemaOrStrings",
}

var scalars = map[reflect.Kind]string{
	reflect.Bool:    "bool",
	reflect.Int32:   "int32",
	reflect.Int64:   "int64",
	reflect.Float64: "double",
	reflect.String:  "string",
}

// messagesOf returns the messages that the kinds reach, by name.
func messagesOf(kinds []kind) []message {
	found := map[string]message{}
	for _, each := range kinds {
		collect(each.goType, found)
	}
	result := []message{}
	for _, each := range found {
		result = append(result, each)
	}
	sort.Slice(result, func(i, j int) bool { return result[i].name < result[j].name })
	return result
}

func nameOf(goType reflect.Type) string {
	directory, version := path.Split(goType.PkgPath())
	return path.Base(directory) + "/" + version + "." + goType.Name()
}

func collect(goType reflect.Type, found map[string]message) {
	name := nameOf(goType)
	if _, ok := found[name]; ok {
		return
	}
	found[name] = message{}
	byNumber := map[int]string{}
	for i := range goType.NumField() {
		field := goType.Field(i)
		tag, ok := field.Tag.Lookup("protobuf")
		if !ok {
			if field.Type != reflect.TypeFor[meta.TypeMeta]() {
				panic(fmt.Sprintf("%s.%s has no field number", name, field.Name))
			}
			continue // Travels in the envelope.
		}
		var wire string
		var number int
		if _, err := fmt.Sscanf(strings.Replace(tag, ",", " ", 2), "%s %d", &wire, &number); err != nil {
			panic(fmt.Sprintf("%s.%s has the tag %s: %v", name, field.Name, tag, err))
		}
		byNumber[number] = fmt.Sprintf("%d %s", number, describe(field, name, found))
	}
	numbers := []int{}
	for number := range byNumber {
		numbers = append(numbers, number)
	}
	sort.Ints(numbers)
	fields := []string{}
	for _, number := range numbers {
		fields = append(fields, byNumber[number])
	}
	found[name] = message{name, fields}
}

// describe tells the JSON name and the type of a field.
func describe(field reflect.StructField, owner string, found map[string]message) string {
	json, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if strings.Contains(options, "inline") || (json == "" && field.Anonymous) {
		collect(field.Type, found)
		return ". " + nameOf(field.Type)
	}
	if json == "" || json == "-" || strings.Contains(options, "string") {
		panic(fmt.Sprintf("%s.%s: nothing is known here of the tag json:%q", owner, field.Name, field.Tag.Get("json")))
	}
	goType, prefix := field.Type, ""
	switch {
	case goType.Kind() == reflect.Pointer:
		goType, prefix = goType.Elem(), "*"
	case isStringList(goType), goType == reflect.TypeFor[[]byte]():
	case goType.Kind() == reflect.Slice:
		goType, prefix = goType.Elem(), "[]"
	case goType.Kind() == reflect.Map:
		if goType.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("%s.%s is a map of %s", owner, field.Name, goType.Key()))
		}
		goType, prefix = goType.Elem(), "{}"
	}
	if prefix == "" && !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
		prefix = "!"
	}
	return json + " " + prefix + typeName(goType, found)
}

func typeName(goType reflect.Type, found map[string]message) string {
	if name, ok := special[goType]; ok {
		if strings.HasPrefix(name, "schema") {
			collect(reflect.TypeFor[apiextensions.JSONSchemaProps](), found)
		}
		return name
	}
	if name, ok := scalars[goType.Kind()]; ok {
		return name
	}
	switch {
	case isStringList(goType):
		return "stringList"
	case goType == reflect.TypeFor[[]byte]():
		return "bytes"
	case goType.Kind() == reflect.Struct:
		collect(goType, found)
		return nameOf(goType)
	}
	panic(fmt.Sprintf("nothing is known here of %s", goType))
}

// isStringList tells a list that is a message of its own on the wire (Verbs, ExtraValue) from one that
// is a repeated field.
func isStringList(goType reflect.Type) bool {
	_, marshals := reflect.PointerTo(goType).MethodByName("MarshalToSizedBuffer")
	return marshals && goType.Kind() == reflect.Slice && goType.Elem().Kind() == reflect.String
}
