/* usage: embed_c WEIGHTS: runs the model on an image of ones and prints the strongest class. */
#include <stdio.h>
#include <stdlib.h>

#include "resnet18.h"

int main(int count, char** arguments) {
  sylvite_model* model = NULL;
  if (resnet18_create(count > 1 ? arguments[1] : "resnet18.weights", &model) != SYLVITE_OK) {
    fprintf(stderr, "%s\n", resnet18_error_message(NULL));
    return 1;
  }
  const size_t pixels = resnet18_input(0)->bytes / sizeof(float);
  const size_t classes = resnet18_output(0)->bytes / sizeof(float);
  float* image = malloc(pixels * sizeof(float));
  float* scores = malloc(classes * sizeof(float));
  for (size_t i = 0; i < pixels; ++i) image[i] = 1.0F;

  const void* inputs[] = {image};
  void* outputs[] = {scores};
  const int status = resnet18_run(model, inputs, outputs);
  if (status != SYLVITE_OK) fprintf(stderr, "%s\n", resnet18_error_message(model));
  size_t best = 0;
  for (size_t i = 1; i < classes; ++i) best = scores[i] > scores[best] ? i : best;
  if (status == SYLVITE_OK) printf("class %zu, score %.6g\n", best, scores[best]);

  resnet18_destroy(model);
  free(image);
  free(scores);
  return status;
}
