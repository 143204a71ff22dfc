// Picture: shapes and words at places, in points from the top left. What `viz` makes; printed as
// SVG by ourselves (a page of text), as PNG by cairo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna::tools {

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0;
};

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
  Color fill;
};

struct Line {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  Color color;
  double width = 1;
};

struct Dot {
  double x = 0, y = 0, radius = 3;
  Color color;
};

enum class Align : std::uint8_t { kLeft, kCentre, kRight };

struct Label {
  double x = 0, y = 0;  ///< of the baseline, at the side that `align` names
  std::string text;     ///< UTF-8
  double size = 11;
  Align align = Align::kLeft;
  bool bold = false;
};

/// Drawn in this order: rectangles (which do not overlap), lines, dots, labels, on white.
struct Picture {
  double width = 0, height = 0;
  std::vector<Rectangle> rectangles{};
  std::vector<Line> lines{};
  std::vector<Dot> dots{};
  std::vector<Label> labels{};
};

std::string print_svg(const Picture& picture);

/// The bytes of a PNG with two pixels to a point; nullopt with kUnsupported if this machine has no
/// cairo (libcairo.so.2), which is opened on demand.
std::optional<std::string> print_png(const Picture& picture, Diagnostics& diagnostics);

/// Writes `path` in the format its ending names (.svg, .png); false with diagnostics.
bool write_picture(const Picture& picture, const std::string& path, Diagnostics& diagnostics);

}  // namespace lacuna::tools
