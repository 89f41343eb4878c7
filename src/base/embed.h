/* embed.h - a file inside the program.
 *
 * The assembler reads the file, which gcc and clang both leave to it, and faster than any array of
 * numbers could be compiled. Its bytes live as long as the program.
 */
#ifndef BASE_EMBED_H
#define BASE_EMBED_H

#include <stddef.h>    // size_t, which whoever embeds a file counts it in

/* At the top of a .c file: gogh_NAME_begin and gogh_NAME_end are where the bytes of 'file', a
 * literal, begin and end.
 */
#define EMBED(name, file)             \
    __asm__(".pushsection .rodata\n"  \
            "gogh_" #name "_begin:\n" \
            ".incbin \"" file "\"\n"  \
            "gogh_" #name "_end:\n"   \
            ".byte 0\n"               \
            ".popsection\n");         \
    extern const char gogh_##name##_begin[], gogh_##name##_end[]

#endif
