// usage: embed_cpp WEIGHTS: runs the model on an image of ones and prints the strongest class.
#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "resnet18.h"

int main(int count, char** arguments) {
  sylvite_model* handle = nullptr;
  if (resnet18_create(count > 1 ? arguments[1] : "resnet18.weights", &handle) != SYLVITE_OK) {
    std::cerr << resnet18_error_message(nullptr) << '\n';
    return 1;
  }
  const std::unique_ptr<sylvite_model, decltype(&resnet18_destroy)> model(handle, resnet18_destroy);
  resnet18_set_threads(2);
  std::vector<float> image(resnet18_input(0)->bytes / sizeof(float), 1.0F);
  std::vector<float> scores(resnet18_output(0)->bytes / sizeof(float));

  const void* inputs[] = {image.data()};
  void* outputs[] = {scores.data()};
  if (resnet18_run(model.get(), inputs, outputs) != SYLVITE_OK) {
    std::cerr << resnet18_error_message(model.get()) << '\n';
    return 1;
  }
  const auto best = std::max_element(scores.begin(), scores.end());
  std::cout << "class " << best - scores.begin() << ", score " << *best << '\n';
}
