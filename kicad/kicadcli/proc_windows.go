// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

// signal names the exception that ended a process, "" for none.
func signal(state *os.ProcessState) string { return exception(uint32(state.ExitCode())) }

// own marks a private folder as this process's: while the file is open here nobody else opens it.
func own(home string) (*os.File, error) {
	return openAlone(filepath.Join(home, ownerFile), syscall.CREATE_NEW)
}

// claim opens the file of a process that is gone, and reports false where it lives.
func claim(name string) (*os.File, bool, error) {
	f, err := openAlone(name, syscall.OPEN_EXISTING)
	return f, err == nil, err
}

// openAlone opens a file so that no other process can (no share mode), see CreateFileW,
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew.
func openAlone(name string, disposition uint32) (*os.File, error) {
	p, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, disposition, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

// windowsFolder is the folder of Windows itself, see GetSystemWindowsDirectoryW,
// https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getsystemwindowsdirectoryw.
func windowsFolder() string {
	buf := make([]uint16, syscall.MAX_PATH)
	n, _, _ := syscall.NewLazyDLL("kernel32.dll").NewProc("GetSystemWindowsDirectoryW").Call(uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if n == 0 || int(n) > len(buf) {
		return `C:\Windows`
	}
	return syscall.UTF16ToString(buf)
}

// systemDisk is the root of the disk that programs are installed on.
func systemDisk() string { return filepath.VolumeName(windowsFolder()) + `\` }
