// The process that holds a Pod's namespaces: see docs/contributing/real-apiserver.md.
module spry/pause

go 1.26.0
