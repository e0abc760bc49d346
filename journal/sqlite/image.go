// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
)

// An image is what stands in the files of a database, read without SQLite, which
// looks at nothing any more once one page that leads to others is bad. The format is
// that of https://www.sqlite.org/fileformat2.html. Whoever reads an image trusts
// nothing in it that has no checksum.
type image struct {
	size  int64 // of a page; ours have nothing reserved at their end
	file  []byte
	log   []byte           // the write-ahead log
	newer map[uint32]int64 // where a page stands in the log, for those that do
	free  map[uint32]bool  // pages that hold what was deleted
}

const (
	usualPage  = 4096 // what SQLite takes by itself
	fileHeader = 100
	logHeader  = 32
	logFrame   = 24
)

// openImage reads the database at a path and the log beside it.
func openImage(path string) (*image, error) {
	m, err := openLog(path)
	if err != nil {
		return nil, err
	}
	if m.file, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	if _, ok := m.headSum(); !ok && len(m.file) >= fileHeader {
		n := int64(binary.BigEndian.Uint16(m.file[16:]))
		if n == 1 {
			n = 65536
		}
		m.setSize(n)
	}
	m.readLog()
	m.readFree()
	return m, nil
}

// openLog reads the log alone.
func openLog(path string) (*image, error) {
	log, err := os.ReadFile(path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	m := &image{size: usualPage, log: log, newer: map[uint32]int64{}, free: map[uint32]bool{}}
	if _, ok := m.headSum(); ok {
		m.setSize(int64(binary.BigEndian.Uint32(log[8:])))
	}
	return m, nil
}

func (m *image) setSize(n int64) {
	if n >= 512 && n <= 65536 && n&(n-1) == 0 {
		m.size = n
	}
}

// readFree follows the list of free pages, as far as it leads.
func (m *image) readFree() {
	first := m.page(1)
	if len(first) < fileHeader || string(first[:16]) != "SQLite format 3\x00" {
		return
	}
	for trunk := binary.BigEndian.Uint32(first[32:]); trunk != 0 && !m.free[trunk]; {
		page := m.page(trunk)
		if int64(len(page)) < m.size {
			return
		}
		m.free[trunk] = true
		n := int64(binary.BigEndian.Uint32(page[4:]))
		if n > m.size/4-2 {
			return
		}
		for i := range n {
			m.free[binary.BigEndian.Uint32(page[8+4*i:])] = true
		}
		trunk = binary.BigEndian.Uint32(page)
	}
}

// pages is the number of the last page that there is anything of.
func (m *image) pages() uint32 {
	last := uint32((int64(len(m.file)) + m.size - 1) / m.size)
	for page := range m.newer {
		last = max(last, page)
	}
	return last
}

// page is the newest content of a page, short where the file ends in it and empty
// where there is none.
func (m *image) page(n uint32) []byte {
	if at, ok := m.newer[n]; ok {
		return m.log[at : at+m.size]
	}
	from := (int64(n) - 1) * m.size
	if n == 0 || from >= int64(len(m.file)) {
		return nil
	}
	return m.file[from:min(from+m.size, int64(len(m.file)))]
}

// rows calls do with every row of a table that can be read, whatever the table.
func (m *image) rows(do func(cells)) {
	for n := uint32(1); n <= m.pages(); n++ {
		if m.free[n] {
			continue
		}
		page, head := m.page(n), int64(0)
		if n == 1 {
			head = fileHeader
		}
		if int64(len(page)) < head+8 || page[head] != 0x0d { // no leaf of a table
			continue
		}
		for i := range int64(binary.BigEndian.Uint16(page[head+3:])) {
			at := head + 8 + 2*i
			if at+2 > int64(len(page)) {
				break
			}
			if r, ok := m.row(page, int64(binary.BigEndian.Uint16(page[at:]))); ok {
				do(r)
			}
		}
	}
}

// row reads the cell at an offset of a page.
func (m *image) row(page []byte, at int64) (cells, bool) {
	cell := page[min(at, int64(len(page))):]
	size, n := varint(cell)
	_, k := varint(cell[n:]) // the row's number
	if cell = cell[n+k:]; n == 0 || k == 0 || size > int64(len(m.file)+len(m.log)) || size < 1 {
		return nil, false
	}
	local := size
	if limit := m.size - 35; size > limit {
		least := (m.size-12)*32/255 - 23
		if local = least + (size-least)%(m.size-4); local > limit {
			local = least
		}
	}
	if local == size {
		if int64(len(cell)) < size {
			return nil, false
		}
		return parseRow(cell[:size])
	}
	if int64(len(cell)) < local+4 {
		return nil, false
	}
	data := append(make([]byte, 0, size), cell[:local]...)
	for next := binary.BigEndian.Uint32(cell[local:]); int64(len(data)) < size; {
		more := m.page(next)
		if int64(len(more)) < m.size {
			return nil, false
		}
		data = append(data, more[4:min(m.size, 4+size-int64(len(data)))]...)
		next = binary.BigEndian.Uint32(more)
	}
	return parseRow(data)
}

// The cells are the columns of one row, and a value is one of them: a number, or
// else bytes.
type (
	cells []value
	value struct {
		number bool
		n      int64
		bytes  []byte
	}
)

// parseRow reads a row in the record format of SQLite.
func parseRow(data []byte) (cells, bool) {
	size, at := varint(data)
	if at == 0 || size > int64(len(data)) || size < int64(at) {
		return nil, false
	}
	types, body := data[at:size], data[size:]
	var out cells
	for len(types) > 0 {
		kind, n := varint(types)
		if n == 0 || kind < 0 {
			return nil, false
		}
		types = types[n:]
		v, size := parseValue(kind, body)
		if size < 0 {
			return nil, false
		}
		out, body = append(out, v), body[size:]
	}
	return out, true
}

// parseValue reads a value of a serial type; its size is negative when it is not
// all there, or of a type that no column of ours has.
func parseValue(kind int64, body []byte) (value, int64) {
	if kind >= 12 {
		size := (kind - 12) / 2
		if size > int64(len(body)) {
			return value{}, -1
		}
		return value{bytes: body[:size]}, size
	}
	width := [12]int64{-1, 1, 2, 3, 4, 6, 8, -1, 0, 0, -1, -1}[kind]
	if width < 0 || width > int64(len(body)) {
		return value{}, -1
	}
	v := value{number: true, n: kind - 8} // 8 is the number 0, 9 the number 1
	if width > 0 {
		v.n = int64(int8(body[0]))
		for _, b := range body[1:width] {
			v.n = v.n<<8 | int64(b)
		}
	}
	return v, width
}

// varint reads a number of one to nine bytes and says how many; 0 when it is cut.
func varint(data []byte) (v int64, n int) {
	for i, b := range data[:min(9, len(data))] {
		if i == 8 {
			return v<<8 | int64(b), 9
		}
		v = v<<7 | int64(b&0x7f)
		if b < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
