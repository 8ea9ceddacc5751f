// Losses, of [N, C] each, reduced to their mean.
#include "samebytes/ops.h"
#include "sweep_ops/sweep.h"

namespace samebytes::benchmarks {

void add_losses(std::vector<Row>& rows) {
  const auto of_classes = [&](const char* name, std::function<Array(const Array&, const Array&)> f, double low = -1,
                              double high = 1) {
    rows.push_back({name, [=](int s) {
                      const Shape shape = plane(s);
                      return Case{{values(shape, low, high), labels({shape[0]}, shape[1])}, 1, [=](Inputs x) {
                                    return Results{f(x[0], x[1])};
                                  }};
                    }});
  };
  of_classes("cross_entropy", [](const Array& a, const Array& t) { return cross_entropy(a, t); });
  of_classes("cross_entropy/smooth",
             [](const Array& a, const Array& t) { return cross_entropy(a, t, {.label_smoothing = 0.1f}); });
  of_classes("nll_loss", [](const Array& a, const Array& t) { return nll_loss(a, t); });
  of_classes("focal_loss", [](const Array& a, const Array& t) { return focal_loss(a, t); });
  of_classes("multi_margin_loss", [](const Array& a, const Array& t) { return multi_margin_loss(a, t); });
  rows.push_back({"cross_entropy/few_classes", [](int s) {
                    const std::int64_t n = plane(s).size() / 10;
                    return Case{{values({n, 10}), labels({n}, 10)}, 1, [](Inputs x) {
                                  return Results{cross_entropy(x[0], x[1])};
                                }};
                  }});
  rows.push_back({"cross_entropy/probabilities", [](int s) {
                    return Case{{values(plane(s)), softmax(uniform(plane(s))).wait()}, 1, [](Inputs x) {
                                  return Results{cross_entropy(x[0], x[1])};
                                }};
                  }});
  rows.push_back(
      {"linear_cross_entropy", [](int s) {
         constexpr std::int64_t kN[kSizes] = {16, 128, 512}, kD[kSizes] = {16, 64, 256}, kV[kSizes] = {32, 1000, 8000};
         return Case{{values({kN[s], kD[s]}), values({kV[s], kD[s]}), labels({kN[s]}, kV[s])}, 2, [](Inputs x) {
                       return Results{linear_cross_entropy(x[0], x[1], x[2])};
                     }};
       }});

  // Of two arrays of one shape, the gradient with respect to the first `wrt` of them.
  const auto of_pairs = [&](const char* name, std::size_t wrt, std::function<Array(Inputs)> f, double low = -1,
                            double high = 1) {
    rows.push_back({name, [=](int s) {
                      return Case{{values(plane(s), low, high), values(plane(s), low, high)}, wrt, [=](Inputs x) {
                                    return Results{f(x)};
                                  }};
                    }});
  };
  of_pairs(
      "sigmoid_focal_loss", 1, [](Inputs x) { return sigmoid_focal_loss(x[0], x[1], {.reduction = Reduction::mean}); },
      0.1, 0.9);
  of_pairs(
      "bce_with_logits", 1, [](Inputs x) { return bce_with_logits(x[0], x[1]); }, 0.1, 0.9);
  of_pairs(
      "bce_loss", 1, [](Inputs x) { return bce_loss(x[0], x[1]); }, 0.1, 0.9);
  of_pairs(
      "kl_div", 1, [](Inputs x) { return kl_div(x[0], x[1]); }, 0.1, 0.9);
  of_pairs("mse_loss", 1, [](Inputs x) { return mse_loss(x[0], x[1]); });
  of_pairs("l1_loss", 1, [](Inputs x) { return l1_loss(x[0], x[1]); });
  of_pairs("smooth_l1_loss", 1, [](Inputs x) { return smooth_l1_loss(x[0], x[1]); });
  of_pairs("huber_loss", 1, [](Inputs x) { return huber_loss(x[0], x[1]); });
  of_pairs("hinge_loss", 1, [](Inputs x) { return hinge_loss(x[0], x[1]); });
  of_pairs("hinge_embedding_loss", 1, [](Inputs x) { return hinge_embedding_loss(x[0], sign(x[1])); });
  of_pairs("cosine_similarity", 2, [](Inputs x) { return cosine_similarity(x[0], x[1]); });
  rows.push_back({"gaussian_nll_loss", [](int s) {
                    return Case{{values(plane(s)), values(plane(s), 0.5, 2), values(plane(s))}, 2, [](Inputs x) {
                                  return Results{gaussian_nll_loss(x[0], x[2], x[1])};
                                }};
                  }});
  rows.push_back({"margin_ranking_loss", [](int s) {
                    return Case{{values(plane(s)), values(plane(s)), sign(values(plane(s))).wait()}, 2, [](Inputs x) {
                                  return Results{margin_ranking_loss(x[0], x[1], x[2])};
                                }};
                  }});
  rows.push_back({"cosine_embedding_loss", [](int s) {
                    return Case{{values(plane(s)), values(plane(s)), sign(values({plane(s)[0]})).wait()},
                                2,
                                [](Inputs x) { return Results{cosine_embedding_loss(x[0], x[1], x[2])}; }};
                  }});
  rows.push_back({"triplet_margin_loss", [](int s) {
                    return takes_gradient({values(plane(s)), values(plane(s)), values(plane(s))},
                                          [](Inputs x) { return triplet_margin_loss(x[0], x[1], x[2]); });
                  }});
  rows.push_back({"nt_xent_loss", [](int s) {
                    const Shape shapes[kSizes] = {{16, 64}, {256, 400}, {1024, 512}};
                    return takes_gradient({values(shapes[s])}, [](Inputs x) { return nt_xent_loss(x[0]); });
                  }});
}

}  // namespace samebytes::benchmarks
