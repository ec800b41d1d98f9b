@about
#ifndef @{guard}
#define @{guard}

#include <math.h>

typedef @{real} @{p}_real;

enum {
  @{P}_FEATURES = @{features},       /* numbers of a measurement */
  @{P}_COORDINATES = @{coordinates}  /* numbers of its coordinates */
};

@arrays
/* out = bias + weight x, weight (rows, columns). */
static inline void @{p}_affine_(int rows, int columns, const @{p}_real *weight, const @{p}_real *bias,
                                const @{p}_real *x, @{p}_real *out) {
  int i, j;
  for (i = 0; i < rows; i++) {
    @{p}_real sum = 0;
    for (j = 0; j < columns; j++) sum += *weight++ * x[j];
    out[i] = bias[i] + sum;
  }
}

/* out += weight x. */
static inline void @{p}_linear_(int rows, int columns, const @{p}_real *weight, const @{p}_real *x, @{p}_real *out) {
  int i, j;
  for (i = 0; i < rows; i++) {
    @{p}_real sum = 0;
    for (j = 0; j < columns; j++) sum += *weight++ * x[j];
    out[i] += sum;
  }
}

/* out = g weight: a row of derivatives, one layer back. */
static inline void @{p}_back_(int rows, int columns, const @{p}_real *weight, const @{p}_real *g, @{p}_real *out) {
  int i, j;
  for (j = 0; j < columns; j++) out[j] = 0;
  for (i = 0; i < rows; i++)
    for (j = 0; j < columns; j++) out[j] += g[i] * *weight++;
}

@activations
/* y as the encoder sees it: in units of the features, and then standardized. */
static inline void @{p}_standardize_(const @{p}_real *y, @{p}_real *scaled, @{p}_real *x) {
  int i;
  for (i = 0; i < @{P}_FEATURES; i++) {
    scaled[i] = @scaled;
    x[i] = (scaled[i] - @encoder_in_shift) / @encoder_in_scale;
  }
}

static inline void @{p}_encode_(const @{p}_real *x, @{p}_real *z) {
@encoder_body
}

static inline void @{p}_decode_(const @{p}_real *z, @{p}_real *y) {
@decoder_body
}

/* Coordinates z (@{P}_COORDINATES) of a measurement y (@{P}_FEATURES). NaN gives NaN. */
static inline void @{p}_encode(const @{p}_real *y, @{p}_real *z) {
  @{p}_real scaled[@{P}_FEATURES], x[@{P}_FEATURES];
  @{p}_standardize_(y, scaled, x);
  @{p}_encode_(x, z);
}

/* The measurement y (@{P}_FEATURES) at coordinates z (@{P}_COORDINATES). */
static inline void @{p}_decode(const @{p}_real *z, @{p}_real *y) {
  int i;
  @{p}_decode_(z, y);
  for (i = 0; i < @{P}_FEATURES; i++) y[i] = @unscaled;
}

/* Coordinates z, and their derivatives jacobian[i * @{P}_FEATURES + j] = dz[i] / dy[j]. */
static inline void @{p}_encode_with_jacobian(const @{p}_real *y, @{p}_real *z, @{p}_real *jacobian) {
  @{p}_real scaled[@{P}_FEATURES], x[@{P}_FEATURES];
  int i, j;
@slopes_body
  for (i = 0; i < @{P}_COORDINATES; i++) {
    @{p}_real *row = jacobian + i * @{P}_FEATURES;
@jacobian_body
    for (j = 0; j < @{P}_FEATURES; j++) row[j] = @row;
  }
}

/* Coordinates z of a measurement y, and how far to believe them: the fraction of held-out measurements that are at
   least as strange. Near 0: unlike anything in the fit. A measurement with NaN has trust 0. */
static inline @{p}_real @{p}_encode_with_trust(const @{p}_real *y, @{p}_real *z) {
  @{p}_real scaled[@{P}_FEATURES], x[@{P}_FEATURES];
  @{p}_real error = 0, gap = (@{p}_real)HUGE_VAL, strangeness;
  const @{p}_real *place = @{p}_training_;
  int j, low = 0, high = @{n_scores};
  long i;
  @{p}_standardize_(y, scaled, x);
  @{p}_encode_(x, z);
  @{p}_decode_(z, x);
  for (i = 0; i < @{P}_FEATURES; i++) error += (x[i] - scaled[i]) * (x[i] - scaled[i]);
  for (i = 0; i < @{n_training}; i++) {
    @{p}_real square = 0;
    for (j = 0; j < @{P}_COORDINATES; j++) {
      const @{p}_real step = z[j] - *place++;
      square += step * step;
    }
    if (square < gap) gap = square;
  }
  error = @{sqrt}(error) / @{round_trip};
  gap = @{sqrt}(gap) / @{gap};
  strangeness = (error > gap ? error : gap) * @{tie}; /* equal scores are equal to rounding */
  if (!(error >= 0)) return 0; /* NaN */
  while (low < high) { /* the number of scores below */
    const int middle = low + (high - low) / 2;
    if (@{p}_scores_[middle] < strangeness)
      low = middle + 1;
    else
      high = middle;
  }
  return (@{p}_real)(1 + @{n_scores} - low) / (@{p}_real)(1 + @{n_scores});
}

#endif /* @{guard} */
