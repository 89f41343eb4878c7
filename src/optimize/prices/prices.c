#include "optimize/prices/prices.h"

#include "optimize/model/again.h"

/* The last step that a slot holding 'low' reaches; -1: none. A hair below counts as reached:
 * steps stand where slots are, and whoever made them may have rounded otherwise.
 */
static int step_of(const struct slot_class *c, double low)
{
    double reach = low * (1 + AGAIN_SAME);
    int first = 0, n = c->n_steps;

    while (n > 0) {
        int half = n / 2;
        if (c->from[first + half] <= reach) {
            first += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return first - 1;
}

double price_of(const struct prices *u, int kind, int size, double low)
{
    for (int i = u->first[kind]; i < u->first[kind + 1]; i++)
        if (u->classes[i].size == size) {
            int step = step_of(&u->classes[i], low);
            double first = u->classes[i].n_steps ? u->classes[i].price[0] : 0;
            return step >= 0 ? u->classes[i].price[step] : first < 0 ? first : 0;
        }
    return 0;
}
