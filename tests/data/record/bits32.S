# A program of 32 bits: writes five bytes and ends with 7.
    .globl _start
_start:
    mov $4, %eax
    mov $1, %ebx
    mov $text, %ecx
    mov $5, %edx
    int $0x80
    mov $1, %eax
    mov $7, %ebx
    int $0x80
    .data
text: .ascii "thin\n"
