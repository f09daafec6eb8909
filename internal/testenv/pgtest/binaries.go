// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// versionedDirectories is where Debian and its kin keep one folder of binaries
// per major version.
const versionedDirectories = "/usr/lib/postgresql/*/bin"

// Binary returns the path of one of Postgres' programs (initdb, pg_dump, ...),
// all from the same installation as the server that Start runs. The error says
// how to install Postgres.
func Binary(name string) (string, error) {
	dir, err := binDirectory()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}

// binDirectory returns the folder that holds both initdb and postgres: the one
// PATH leads to, else the newest of versionedDirectories.
func binDirectory() (string, error) {
	versioned, err := filepath.Glob(versionedDirectories)
	if err != nil {
		return "", fmt.Errorf("pgtest: looking for Postgres: %w", err)
	}
	return firstComplete(append(fromPath(), newestFirst(versioned)...))
}

func firstComplete(dirs []string) (string, error) {
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("pgtest: no Postgres found in PATH nor in %s: install it, e.g. apt-get install postgresql", versionedDirectories)
}

// fromPath follows links, because a link to initdb in PATH says where the
// server is that PATH may lack.
func fromPath() []string {
	var dirs []string
	for _, name := range []string{"postgres", "initdb"} {
		found, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(found); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	return dirs
}

// newestFirst sorts .../<major>/bin folders by major version, newest first.
func newestFirst(dirs []string) []string {
	major := func(dir string) float64 {
		v, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(dir)), 64) // not a number sorts last
		return v
	}
	sorted := slices.Clone(dirs)
	slices.SortFunc(sorted, func(a, b string) int {
		switch {
		case major(a) > major(b):
			return -1
		case major(a) < major(b):
			return 1
		}
		return 0
	})
	return sorted
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}
