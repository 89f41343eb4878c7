/* spread.h - what a handful of seeds says: mean, and how sure one may be of it.
 *
 * A plain value; read by the report and by whoever prints figures with an interval.
 */
#ifndef STUDY_SPREAD_H
#define STUDY_SPREAD_H

#include <stdbool.h>

struct spread {
    int n;
    double mean;         // NaN of none
    double half;         // half the width of the 95 % confidence interval; NaN of less than two
    double low, high;    // smallest and largest
    double from, to;     // what is shown around the mean; NaN of less than two
};

/* From so many values on the interval is shown; of fewer it is mostly Student's t, and the
 * smallest and the largest say more.
 */
#define SPREAD_INTERVAL 4

/* Of the 'n' values; NaN among them are left out. */
struct spread spread_of(const double *v, int n);

/* The same, for values that are never below 'least' nor above 'most': nor is what is shown. */
struct spread spread_within(struct spread s, double least, double most);

/* Is the interval shown, and as it is: not cut off by spread_within? */
bool spread_is_even(const struct spread *s);

/* Student's t with 'freedom' (1 ...) degrees of freedom intervals below this 97.5 times in 100. */
double spread_student(int freedom);

#endif
