#include "probe/burn/kernels.h"

/* Numbers are small and whole, so that sums are exact in any order and the check can ask for
 * equality.
 *
 * product: each of 16 x 16 makes 4 x 4 of a tile, from strips of both matrices that the group has
 * read into local memory. Far from what vendors reach, and alike on all of them.
 */
const char burn_kernels[] =
    "#define GROUP 16\n"
    "#define TILE 64\n"
    "#define EACH 4\n"    // TILE / GROUP

    /* to[i] = i modulo m, around 0 */
    "__kernel void fill(__global float *to, ulong n, uint m)\n"
    "{\n"
    "    const ulong i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        to[i] = (float)((int)(i % m) - (int)(m / 2));\n"
    "}\n"

    /* y (rows, side) = x (rows, side) times w (side, side), which begins at 'layer' of them */
    "__kernel __attribute__((reqd_work_group_size(GROUP, GROUP, 1)))\n"
    "void product(__global const float *x, __global const float *w, __global float *y,\n"
    "             uint rows, uint side, uint layer)\n"
    "{\n"
    "    __local float xs[GROUP][TILE + 1], ws[GROUP][TILE];\n"
    "    const uint tx = get_local_id(0), ty = get_local_id(1), t = ty * GROUP + tx;\n"
    "    const ulong col = (ulong)get_group_id(0) * TILE, row = (ulong)get_group_id(1) * TILE;\n"
    "    float sum[EACH][EACH];\n"
    "    for (uint i = 0; i < EACH; i++)\n"
    "        for (uint j = 0; j < EACH; j++)\n"
    "            sum[i][j] = 0.0f;\n"
    "    w += (ulong)layer * side * side;\n"
    "    for (uint k = 0; k < side; k += GROUP) {\n"
    "        for (uint i = t; i < GROUP * TILE; i += GROUP * GROUP) {\n"
    "            const ulong r = row + i / GROUP;\n"
    "            xs[i % GROUP][i / GROUP] = r < rows ? x[r * side + k + i % GROUP] : 0.0f;\n"
    "            ws[i / TILE][i % TILE] = w[(ulong)(k + i / TILE) * side + col + i % TILE];\n"
    "        }\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        for (uint l = 0; l < GROUP; l++) {\n"
    "            float a[EACH], b[EACH];\n"
    "            for (uint i = 0; i < EACH; i++) {\n"
    "                a[i] = xs[l][ty + i * GROUP];\n"
    "                b[i] = ws[l][tx + i * GROUP];\n"
    "            }\n"
    "            for (uint i = 0; i < EACH; i++)\n"
    "                for (uint j = 0; j < EACH; j++)\n"
    "                    sum[i][j] += a[i] * b[j];\n"
    "        }\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    }\n"
    "    for (uint i = 0; i < EACH; i++)\n"
    "        for (uint j = 0; j < EACH; j++)\n"
    "            if (row + ty + i * GROUP < rows)\n"
    "                y[(row + ty + i * GROUP) * side + col + tx + j * GROUP] = sum[i][j];\n"
    "}\n"

    "__kernel void triad(__global float *a, __global const float *b, __global const float *c,\n"
    "                    ulong n, float s)\n"
    "{\n"
    "    const ulong i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        a[i] = b[i] + s * c[i];\n"
    "}\n"

    "__kernel void tiny(__global float *z, ulong n)\n"
    "{\n"
    "    const ulong i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        z[i] = z[i] * 0.5f + 1.0f;\n"
    "}\n";
