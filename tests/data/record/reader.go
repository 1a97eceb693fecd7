// Reads its own file in pieces, in several goroutines.
package main

import (
	"os"
	"sync"
)

func main() {
	var group sync.WaitGroup
	totals := make([]int, 4)
	for n := range totals {
		group.Add(1)
		go func() {
			defer group.Done()
			file, err := os.Open(os.Args[0])
			if err != nil {
				panic(err)
			}
			defer file.Close()
			piece := make([]byte, 8192)
			for {
				length, _ := file.Read(piece)
				if length == 0 {
					break
				}
				totals[n] += length
			}
		}()
	}
	group.Wait()
	for _, total := range totals {
		if total == 0 || total != totals[0] {
			os.Exit(1)
		}
	}
	os.Stdout.WriteString("read\n")
}
