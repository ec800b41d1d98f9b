/* Runs the header over points: reads and writes plain numbers, one task per call. */
#include "model.h"

#include <stdio.h>

#define IN(n) if (fread(in, sizeof(@{p}_real), n, stdin) != (n)) return 0
#define OUT(values, n) if (fwrite(values, sizeof(@{p}_real), n, stdout) != (n)) return 1

int main(int count, char **words) {
  static @{p}_real in[@{P}_FEATURES + @{P}_COORDINATES], out[@{P}_FEATURES + @{P}_COORDINATES];
  static @{p}_real jacobian[@{P}_FEATURES * @{P}_COORDINATES];
  if (count != 2) return 2;
  for (;;) {
    switch (words[1][0]) {
      case 'e':
        IN(@{P}_FEATURES);
        @{p}_encode(in, out);
        OUT(out, @{P}_COORDINATES);
        break;
      case 'd':
        IN(@{P}_COORDINATES);
        @{p}_decode(in, out);
        OUT(out, @{P}_FEATURES);
        break;
      case 'j':
        IN(@{P}_FEATURES);
        @{p}_encode_with_jacobian(in, out, jacobian);
        OUT(jacobian, @{P}_FEATURES * @{P}_COORDINATES);
        break;
      case 't':
        IN(@{P}_FEATURES);
        out[0] = @{p}_encode_with_trust(in, out + 1);
        OUT(out, 1);
        break;
      default:
        return 2;
    }
  }
}
