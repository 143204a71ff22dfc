#include "tools/picture/calibration_picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lacuna::tools {
namespace {

constexpr double kLeft = 64, kRight = 20, kTop = 64, kChart = 150, kGap = 44, kBottom = 46;
constexpr double kBar = 18, kBetweenHeads = 30, kLeastPlot = 300;
constexpr int kSteps = 4;  ///< of an axis
constexpr Color kFitted{0x1f, 0x4e, 0x8c}, kHeldOut{0x6f, 0xa8, 0xdc};
constexpr Color kTarget{0xd6, 0x27, 0x28}, kAxis{0x60, 0x60, 0x60}, kGridLine{0xe2, 0xe2, 0xe2};

struct Chart {
  double top = 0, highest = 1;
  double height(double value) const { return kChart * std::clamp(value / highest, 0.0, 1.0); }
  double y(double value) const { return top + kChart - height(value); }
};

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

void draw_axes(const Chart& chart, const std::string& name, double width, Picture& picture) {
  for (int step = 0; step <= kSteps; ++step) {
    const double value = chart.highest * step / kSteps, y = chart.y(value);
    picture.lines.push_back({kLeft, y, kLeft + width, y, step == 0 ? kAxis : kGridLine, 1});
    picture.labels.push_back({.x = kLeft - 6,
                              .y = y + 3.5,
                              .text = short_number(value),
                              .size = 10,
                              .align = Align::kRight});
  }
  picture.labels.push_back({.x = kLeft, .y = chart.top - 8, .text = name, .bold = true});
}

double head_width(const Calibration& calibration) {
  return kBar * static_cast<double>(calibration.samples.size()) + kBetweenHeads;
}

/// The least of 1, 2, 2.5, 5 times a power of ten that is not below.
double round_up(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 2.5, 5.0})
    if (step * decade >= value) return step * decade;
  return 10 * decade;
}

void draw_bars(const Calibration& calibration, const Chart& chart, double HeadResult::*value,
               Picture& picture) {
  for (std::size_t head = 0; head < calibration.dense.size(); ++head)
    for (std::size_t sample = 0; sample < calibration.samples.size(); ++sample) {
      const double x = kLeft + kBetweenHeads / 2 +
                       head_width(calibration) * static_cast<double>(head) +
                       kBar * static_cast<double>(sample);
      const double height = chart.height(calibration.results[sample][head].*value);
      const Color color = calibration.samples[sample].held_out ? kHeldOut : kFitted;
      picture.rectangles.push_back({x, chart.top + kChart - height, kBar - 2, height, color});
    }
}

void name_heads(const Calibration& calibration, double y, Picture& picture) {
  for (std::size_t head = 0; head < calibration.dense.size(); ++head)
    picture.labels.push_back(
        {.x = kLeft + head_width(calibration) * (static_cast<double>(head) + 0.5),
         .y = y,
         .text = std::to_string(head) + (calibration.dense[head] ? " dense" : ""),
         .size = 10,
         .align = Align::kCentre});
}

void draw_legend(double y, Picture& picture) {
  double x = kLeft;
  for (const auto& [color, text] :
       {std::pair(kFitted, "calibrated on"), std::pair(kHeldOut, "held out"),
        std::pair(kTarget, "target")}) {
    picture.rectangles.push_back({x, y, 11, 11, color});
    picture.labels.push_back({.x = x + 16, .y = y + 9.5, .text = text, .size = 10});
    x += 110;
  }
}

}  // namespace

Picture calibration_picture(const Calibration& calibration) {
  const auto heads = static_cast<double>(calibration.dense.size());
  const double width = std::max(kLeastPlot, head_width(calibration) * heads);
  double largest = calibration.target_rel_l1;
  for (const auto& sample : calibration.results)
    for (const HeadResult& head : sample) largest = std::max(largest, head.rel_l1);
  const Chart density{.top = kTop, .highest = 1};
  const Chart error{.top = kTop + kChart + kGap, .highest = kSteps * round_up(largest / kSteps)};
  Picture picture;
  picture.width = kLeft + width + kRight;
  picture.height = error.top + kChart + kBottom;
  picture.labels.push_back({.x = kLeft,
                            .y = 24,
                            .text = calibration.spec + ", relative L1 at most " +
                                    short_number(calibration.target_rel_l1),
                            .size = 13,
                            .bold = true});
  draw_axes(density, "Share of visible tiles computed, by head", width, picture);
  draw_bars(calibration, density, &HeadResult::density, picture);
  draw_axes(error, "Relative L1 error against dense attention, by head", width, picture);
  draw_bars(calibration, error, &HeadResult::rel_l1, picture);
  const double target = error.y(calibration.target_rel_l1);
  picture.lines.push_back({kLeft, target, kLeft + width, target, kTarget, 1.5});
  for (const Chart& chart : {density, error})
    name_heads(calibration, chart.top + kChart + 14, picture);
  draw_legend(picture.height - 20, picture);
  return picture;
}

}  // namespace lacuna::tools
