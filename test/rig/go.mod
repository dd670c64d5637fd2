module github.com/isthmus-mesh/isthmus/test/rig

go 1.26.0
