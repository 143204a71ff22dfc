#include "tools/picture/compare_picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace lacuna::tools {
namespace {

constexpr double kWidth = 640, kHeight = 420, kLeft = 64, kRight = 150, kTop = 44, kBottom = 44;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kLeastError = 1e-6;  ///< what a run without error is drawn at
constexpr Color kAxis{0x60, 0x60, 0x60}, kGridLine{0xe2, 0xe2, 0xe2};
constexpr std::array<Color, 10> kColors = {{{0x1f, 0x77, 0xb4},
                                            {0xd6, 0x27, 0x28},
                                            {0x2c, 0xa0, 0x2c},
                                            {0xff, 0x7f, 0x0e},
                                            {0x94, 0x67, 0xbd},
                                            {0x8c, 0x56, 0x4b},
                                            {0xe3, 0x77, 0xc2},
                                            {0x7f, 0x7f, 0x7f},
                                            {0xbc, 0xbd, 0x22},
                                            {0x17, 0xbe, 0xcf}}};

/// Powers of ten that hold all errors.
struct Decades {
  int low = -3, high = 0;
  double y(double error) const {
    const double share = (std::log10(std::max(error, kLeastError)) - low) / (high - low);
    return kTop + kPlotHeight * (1 - share);
  }
};

double x_of(double density) { return kLeft + kPlotWidth * density; }

Decades decades_of(const std::vector<ComparePoint>& points) {
  Decades decades;
  for (const ComparePoint& point : points) {
    if (!std::isfinite(point.rel_l1)) continue;
    const double decade = std::log10(std::max(point.rel_l1, kLeastError));
    decades.low = std::min(decades.low, static_cast<int>(std::floor(decade)));
    decades.high = std::max(decades.high, static_cast<int>(std::ceil(decade)));
  }
  return decades;
}

void draw_axes(const Decades& decades, Picture& picture) {
  for (int step = 0; step <= 5; ++step) {
    const double density = step / 5.0;
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", density);
    picture.lines.push_back({x_of(density), kTop, x_of(density), kTop + kPlotHeight, kGridLine, 1});
    picture.labels.push_back({.x = x_of(density),
                              .y = kTop + kPlotHeight + 16,
                              .text = text,
                              .size = 10,
                              .align = Align::kCentre});
  }
  for (int decade = decades.low; decade <= decades.high; ++decade) {
    const double y = decades.y(std::pow(10.0, decade));
    picture.lines.push_back({kLeft, y, kLeft + kPlotWidth, y, kGridLine, 1});
    picture.labels.push_back({.x = kLeft - 8,
                              .y = y + 4,
                              .text = "1e" + std::to_string(decade),
                              .size = 10,
                              .align = Align::kRight});
  }
  picture.lines.push_back(
      {kLeft, kTop + kPlotHeight, kLeft + kPlotWidth, kTop + kPlotHeight, kAxis, 1});
  picture.lines.push_back({kLeft, kTop, kLeft, kTop + kPlotHeight, kAxis, 1});
  picture.labels.push_back({.x = kLeft + kPlotWidth / 2,
                            .y = kHeight - 8,
                            .text = "density: visited / visible tiles",
                            .align = Align::kCentre});
  picture.labels.push_back({.x = kLeft, .y = kTop - 8, .text = "relative L1 error against dense"});
}

}  // namespace

Picture compare_picture(const std::string& title, const std::vector<ComparePoint>& points) {
  Picture picture{.width = kWidth, .height = kHeight};
  picture.labels.push_back({.x = 16, .y = 20, .text = title, .size = 13, .bold = true});
  const Decades decades = decades_of(points);
  draw_axes(decades, picture);
  std::vector<std::string> labels;
  for (const ComparePoint& point : points) {
    auto known = std::find(labels.begin(), labels.end(), point.label);
    if (known == labels.end()) known = labels.insert(labels.end(), point.label);
    const auto index = static_cast<std::size_t>(known - labels.begin());
    if (!std::isfinite(point.rel_l1)) continue;
    picture.dots.push_back(
        {x_of(point.density), decades.y(point.rel_l1), 4, kColors[index % kColors.size()]});
  }
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const double y = kTop + 8 + 16 * static_cast<double>(n);
    picture.dots.push_back({kWidth - kRight + 18, y, 4, kColors[n % kColors.size()]});
    picture.labels.push_back(
        {.x = kWidth - kRight + 28, .y = y + 3.5, .text = labels[n], .size = 10});
  }
  return picture;
}

}  // namespace lacuna::tools
