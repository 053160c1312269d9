package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler makes objects, the same ones in every run. Full ones have a value in every field; the others
// have zeros wherever one can be told from nothing (behind pointers, in lists, in maps).
type filler struct {
	full  bool
	count int
	open  map[reflect.Type]int
}

// Schemas hold schemas; one within another shows all there is.
const maxRecursion = 2

func (f *filler) object(kind kind) runtime.Object {
	f.open = map[reflect.Type]int{}
	value := reflect.New(kind.goType)
	f.fill(value.Elem(), kind.kind)
	object := value.Interface().(runtime.Object)
	version := strings.Replace(kind.apiVersion, "*", "v1", 1)
	object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind.kind))
	return object
}

func (f *filler) fill(value reflect.Value, name string) {
	f.count++
	if special := f.special(value.Type()); special != nil {
		value.Set(reflect.ValueOf(special))
		return
	}
	if f.open[value.Type()] >= maxRecursion && value.Kind() != reflect.Slice {
		return
	}
	f.open[value.Type()]++
	defer func() { f.open[value.Type()]-- }()
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.Type != reflect.TypeFor[meta.TypeMeta]() {
				f.fill(value.Field(i), field.Name)
			}
		}
	case reflect.Pointer:
		if f.open[value.Type().Elem()] < maxRecursion {
			value.Set(reflect.New(value.Type().Elem()))
			f.fill(value.Elem(), name)
		}
	case reflect.Slice:
		f.fillSlice(value, name)
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		for _, key := range []string{"zeta", "alpha/β"} {
			entry := reflect.New(value.Type().Elem()).Elem()
			if f.fill(entry, name); entry.Kind() == reflect.Slice && entry.IsNil() {
				entry.Set(reflect.MakeSlice(entry.Type(), 0, 0)) // JSON has null for nil, but cannot send it.
			}
			value.SetMapIndex(reflect.ValueOf(key).Convert(value.Type().Key()), entry)
		}
	default:
		if f.full {
			f.fillScalar(value, name)
		}
	}
}

func (f *filler) fillSlice(value reflect.Value, name string) {
	element := value.Type().Elem()
	if element.Kind() == reflect.Uint8 {
		if f.full {
			value.SetBytes([]byte{0, 255, byte(f.count), 'é'})
		}
		return
	}
	if f.open[element] >= maxRecursion {
		return
	}
	length := 1
	if _, isScalar := scalars[element.Kind()]; isScalar {
		length = 2
	}
	value.Set(reflect.MakeSlice(value.Type(), length, length))
	for i := range length {
		f.fill(value.Index(i), name)
	}
}

func (f *filler) fillScalar(value reflect.Value, name string) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(fmt.Sprintf("%s-%d", strings.ToLower(name), f.count))
		if f.count%7 == 0 {
			value.SetString(name + " — ü 語 🚀")
		}
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(int64(f.count))
		if f.count%3 == 0 {
			value.SetInt(-int64(f.count))
		}
		if value.Kind() == reflect.Int64 && f.count%3 == 1 {
			value.SetInt(1<<53 - int64(f.count))
		}
	case reflect.Float64:
		value.SetFloat(float64(f.count) + 0.25)
	default:
		panic(fmt.Sprintf("no value is known here for %s", value.Type()))
	}
}

// special returns a value for types whose fields cannot be filled one by one. Those of which JSON has
// no zero are never left zero: their JSON could not say that they are there.
func (f *filler) special(goType reflect.Type) any {
	moment := time.Date(2024, 2, 29, 13, 14, 15, 123456000, time.UTC)
	switch goType {
	case reflect.TypeFor[meta.Time]():
		return meta.NewTime(moment.Truncate(time.Second))
	case reflect.TypeFor[meta.MicroTime]():
		return meta.NewMicroTime(moment)
	case reflect.TypeFor[meta.FieldsV1]():
		return meta.FieldsV1{Raw: []byte(`{"f:spec":{".":{},"f:replicas":{}}}`)}
	case reflect.TypeFor[runtime.RawExtension]():
		return runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Any","size":[1,null]}`)}
	case reflect.TypeFor[apiextensions.JSON]():
		return apiextensions.JSON{Raw: []byte(`{"deep":["value",1.5,false]}`)}
	case reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():
		if f.open[reflect.TypeFor[apiextensions.JSONSchemaProps]()] < maxRecursion {
			return apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: f.schema()}
		}
		return apiextensions.JSONSchemaPropsOrBool{Allows: f.full}
	case reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():
		if f.count%2 == 0 {
			return apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{*f.schema(), {}}}
		}
		return apiextensions.JSONSchemaPropsOrArray{Schema: f.schema()}
	case reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray]():
		if f.count%2 == 0 {
			return apiextensions.JSONSchemaPropsOrStringArray{Property: []string{"a", "b"}}
		}
		return apiextensions.JSONSchemaPropsOrStringArray{Schema: f.schema()}
	}
	if !f.full && (goType == reflect.TypeFor[resource.Quantity]() || goType == reflect.TypeFor[intstr.IntOrString]()) {
		return reflect.Zero(goType).Interface()
	}
	switch goType {
	case reflect.TypeFor[resource.Quantity]():
		return resource.MustParse([]string{"250m", "1Gi", "3", "1500"}[f.count%4])
	case reflect.TypeFor[intstr.IntOrString]():
		if f.count%2 == 0 {
			return intstr.FromString("25%")
		}
		return intstr.FromInt32(int32(-f.count))
	}
	return nil
}

func (f *filler) schema() *apiextensions.JSONSchemaProps {
	schema := &apiextensions.JSONSchemaProps{}
	f.fill(reflect.ValueOf(schema).Elem(), "schema")
	return schema
}
