// The process that holds a Pod's namespaces: see docs/real-apiserver.md.
module spry/pause

go 1.26.0
