// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// assetsVariable is where setup-envtest's users say their binaries are.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Root returns the folder of this module's go.mod, found upwards from the
// working directory.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("testenv: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("testenv: no go.mod in %s or above: run inside the clone", start)
		}
	}
}

// Binary returns the path of one of the control plane's programs: etcd,
// kube-apiserver, kube-controller-manager or kubectl. It looks in
// KUBEBUILDER_ASSETS, in bin/k8s of the clone, and in the cache that `make
// controlplane` fills.
func Binary(name string) (string, error) {
	dirs, err := binaryDirectories()
	if err != nil {
		return "", err
	}
	return findBinary(name, dirs)
}

func findBinary(name string, dirs []string) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("testenv: there is no %s in any of %q: run `make controlplane`", name, dirs)
}

func binaryDirectories() ([]string, error) {
	var dirs []string
	if assets := os.Getenv(assetsVariable); assets != "" {
		dirs = append(dirs, assets)
	}
	root, err := Root()
	if err != nil {
		if len(dirs) > 0 {
			err = nil // outside a clone the variable has to do
		}
		return dirs, err
	}
	dirs = append(dirs, filepath.Join(root, "bin", "k8s"))
	cache, found := cacheDirectory()
	if !found {
		return dirs, nil
	}
	for _, c := range []struct{ name, module, dir string }{
		{"controlplane", "k8s.io/kubernetes", "hack/controlplane"},
		{"etcd", "go.etcd.io/etcd/server/v3", "hack/etcd"},
	} {
		version, err := requiredVersion(filepath.Join(root, c.dir, "go.mod"), c.module)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, filepath.Join(cache, c.name+"-"+version))
	}
	return dirs, nil
}

// cacheDirectory returns where hack/lib.sh builds to; found is false without a
// home folder.
func cacheDirectory() (dir string, found bool) {
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "sluice"), true
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache", "sluice"), err == nil
}

// requiredVersion returns the version that a go.mod requires of a module: the
// one place a version is pinned.
func requiredVersion(gomod, module string) (string, error) {
	b, err := os.ReadFile(gomod)
	if err != nil {
		return "", fmt.Errorf("testenv: %w", err)
	}
	line := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(module) + `\s+(v\S+)`)
	match := line.FindSubmatch(b)
	if match == nil {
		return "", errors.New("testenv: " + gomod + " does not require " + module)
	}
	return string(match[1]), nil
}
