// SPDX-License-Identifier: Apache-2.0
#include "sim/config/yaml.h"

#include <catch2/catch.hpp>

#include "tests/sim/config/support.h"

using namespace mtsim;
using namespace mtsim::sim;
using namespace mtsim::sim::test;

namespace {

YamlDocument parse(const std::string& text) { return YamlDocument::parse(text, "f.yaml"); }

/// What finish() says after every key was asked for and nothing read.
std::string error_of_text(const std::string& text) {
  return error_of([&] {
    const auto document = parse(text);
    document.root().keys();
    document.finish();
  });
}

/// What reading the value of key `a` says.
template <class Read>
std::string error_of_value(const std::string& value, Read read) {
  return error_of([&] {
    const auto document = parse("a: " + value);
    read(document.root().require("a"));
    document.finish();
  });
}

std::string integer_error(const std::string& value) {
  return error_of_value(value, [](const YamlNode& node) { node.as_integer(); });
}
std::string number_error(const std::string& value) {
  return error_of_value(value, [](const YamlNode& node) { node.as_number(); });
}
std::string boolean_error(const std::string& value) {
  return error_of_value(value, [](const YamlNode& node) { node.as_boolean(); });
}

std::string nested(int levels) {
  return std::string(static_cast<std::size_t>(levels), '[') + std::string(static_cast<std::size_t>(levels), ']');
}

}  // namespace

TEST_CASE("scalars read as what they are asked for", "[yaml]") {
  const auto document = parse("i: -12\nh: 0x1F\nn: 2.5e-3\nb: true\ns: yes\nq: \"32\"\nl: [1, 2]\nm: {k: v}\nz:\n");
  const auto root = document.root();
  CHECK(root.require("i").as_integer() == -12);
  CHECK(root.require("h").as_integer() == 31);
  CHECK(root.require("n").as_number() == 2.5e-3);
  CHECK(root.require("i").as_number() == -12.0);
  CHECK(root.require("b").as_boolean());
  CHECK(root.require("s").as_string() == "yes");
  CHECK(root.require("q").as_string() == "32");
  CHECK(root.require("q").is_quoted());
  REQUIRE(root.require("l").size() == 2);
  CHECK(root.require("l").at(1).as_integer() == 2);
  CHECK(root.require("m").require("k").as_string() == "v");
  CHECK(root.require("z").is_null());
  CHECK_FALSE(root.find("absent"));
  CHECK_NOTHROW(document.finish());
}

TEST_CASE("places count lines and columns from 1", "[yaml]") {
  const auto place = parse("a: 1\nb:\n  c: [7, 8]\n").root().require("b").require("c").at(1).place();
  CHECK(place == isa::Place{"f.yaml", 3, 10});
}

TEST_CASE("the whole range of 64-bit integers reads, and nothing beyond", "[yaml]") {
  const auto value = [](const std::string& text) { return parse("a: " + text).root().require("a").as_integer(); };
  CHECK(value("9223372036854775807") == INT64_MAX);
  CHECK(value("-9223372036854775808") == INT64_MIN);
  CHECK(value("0x7fffffffffffffff") == INT64_MAX);
  CHECK(integer_error("9223372036854775808") ==
        "f.yaml:1:4: error: 'a': expected an integer of 64 bits, found '9223372036854775808'");
  CHECK_FALSE(integer_error("-9223372036854775809").empty());
  CHECK_FALSE(integer_error("99999999999999999999999").empty());
}

TEST_CASE("octal, quoted and mistyped numbers are refused with what to write instead", "[yaml]") {
  CHECK(integer_error("010") ==
        "f.yaml:1:4: error: 'a': expected an integer, found '010'; a leading zero may mean octal; write '10'");
  CHECK(number_error("-00.5") ==
        "f.yaml:1:4: error: 'a': expected a number, found '-00.5'; a leading zero may mean octal; write '-0.5'");
  CHECK(integer_error("\"32\"") ==
        "f.yaml:1:4: error: 'a': expected an integer, found the text \"32\"; remove the quotes");
  CHECK(integer_error("1.5") == "f.yaml:1:4: error: 'a': expected an integer, found '1.5'");
  CHECK(integer_error("[1]") == "f.yaml:1:4: error: 'a': expected a value, found a list");
  CHECK(integer_error("{b: 1}") == "f.yaml:1:4: error: 'a': expected a value, found a mapping");
  CHECK(integer_error("") == "f.yaml:1:1: error: 'a': expected a value, found nothing");
  for (const char* text : {"0o10", "1_000", "0x", "--1", "+1", "1e3", "12 cycles", "yes", "0b1"})
    CHECK_FALSE(integer_error(text).empty());
  for (const char* text : {".inf", "-.inf", ".nan", "nan", "inf", "1e999", "0x10", "1,5", "1.5.2", "-", "1 GB"})
    CHECK_FALSE(number_error(text).empty());
}

TEST_CASE("only true and false are booleans", "[yaml]") {
  CHECK(boolean_error("yes") == "f.yaml:1:4: error: 'a': expected true or false, found 'yes'; write true");
  CHECK(boolean_error("Off") == "f.yaml:1:4: error: 'a': expected true or false, found 'Off'; write false");
  CHECK_FALSE(boolean_error("1").empty());
  CHECK_FALSE(boolean_error("maybe").empty());
}

TEST_CASE("an unknown key is refused with the known ones and the likely one", "[yaml]") {
  const auto text = error_of([] {
    const auto document = parse("cluster:\n  gsm_sizee: 6\n");
    const auto cluster = document.root().require("cluster");
    cluster.find("cores");
    cluster.find("gsm_size");
    document.finish();
  });
  CHECK(
      text ==
      "f.yaml:2:3: error: unknown key 'gsm_sizee' in 'cluster'; known keys: cores, gsm_size; did you mean 'gsm_size'?");
}

TEST_CASE("all mistakes are told at once, in the order of the text", "[yaml]") {
  const auto text = error_of([] {
    const auto document = parse("b: x\na: 010\nc: {d: 1, d: 2, e: 1}\n");
    const auto root = document.root();
    root.require("c").require("d");
    root.require("a").as_integer();
    root.require("b").as_number();
    root.require("f");
    document.finish();
  });
  CHECK(text ==
        "f.yaml:1:1: error: missing key 'f'\n"
        "f.yaml:1:4: error: 'b': expected a number, found 'x'\n"
        "f.yaml:2:4: error: 'a': expected an integer, found '010'; a leading zero may mean octal; write '10'\n"
        "f.yaml:3:11: error: duplicate key 'd' in 'c'; first at line 3; remove one\n"
        "f.yaml:3:17: error: unknown key 'e' in 'c'; known keys: d");
}

TEST_CASE("a missing key is one complaint, however much is read out of it", "[yaml]") {
  const auto text = error_of([] {
    const auto document = parse("a: 1");
    const auto node = document.root().require("b");
    node.require("c").as_integer();
    node.at(3).as_number();
    node.keys();
    document.root().require("a").require("d").as_string();
    document.finish();
  });
  CHECK(text ==
        "f.yaml:1:1: error: missing key 'b'\n"
        "f.yaml:1:4: error: 'a': expected a mapping, found '1'");
}

TEST_CASE("what YAML readers disagree about is refused", "[yaml]") {
  CHECK(error_of_text("a: 1\nb: 2\na: 3") == "f.yaml:3:1: error: duplicate key 'a'; first at line 1; remove one");
  CHECK(error_of_text("a: &x 1") ==
        "f.yaml:1:4: error: anchors ('&name') are not supported; write the value out where it is used");
  CHECK(error_of_text("a: &x 1\nb: *x").find("f.yaml:2:4: error: aliases ('*name') are not supported") !=
        std::string::npos);
  CHECK(error_of_text("a: &x [*x]").find("aliases") != std::string::npos);
  CHECK(error_of_text("<<: {b: 1}\na: 1") ==
        "f.yaml:1:1: error: merge keys ('<<') are not supported; write the keys out");
  CHECK(error_of_text("a: !!int 3").find("f.yaml:1:4: error: tags") == 0);
  CHECK(error_of_text("? [a, b]\n: 1") == "f.yaml:1:3: error: a key must be a word; a ':' may be in the wrong place");
  CHECK(error_of_text(": 1").find("a key must be a word") != std::string::npos);
  CHECK(error_of_text("a: 1\n---\nb: 2").find("f.yaml:2:1: error: a second document starts here") == 0);
  CHECK(error_of_text("a: 1\n...\nb").find("second document") != std::string::npos);
}

TEST_CASE("text that is not YAML is refused with its place", "[yaml]") {
  CHECK(error_of_text("a: [1, 2") ==
        "f.yaml:1:1: error: not valid YAML: end of sequence flow not found; "
        "inside the list that starts at line 1, column 4");
  CHECK(error_of_text("a:\n  b: 1\n c: 2\n").find("f.yaml:3:2: error: not valid YAML: ") == 0);
  CHECK(error_of_text("a: *x").find("not valid YAML") != std::string::npos);
  CHECK(error_of_text("a: 1\n\tb: 2").find("not valid YAML") != std::string::npos);
}

TEST_CASE("an empty file is refused", "[yaml]") {
  for (const char* text : {"", "\n\n", "# nothing\n", "---\n", "~", "---\n...\n"})
    CHECK(error_of_text(text).find("f.yaml:1:1: error: the file is empty") == 0);
}

TEST_CASE("a missing file and a folder are refused with their path", "[yaml]") {
  Folder folder;
  CHECK(error_of([&] { YamlDocument::load(folder.path("none.yaml")); }) ==
        "error: cannot read '" + folder.path("none.yaml") + "': No such file or directory; check the path");
  CHECK(error_of([&] { YamlDocument::load(folder.path("")); }).find("cannot read") != std::string::npos);
  CHECK(error_of([] { YamlDocument::load("/dev/zero"); }).find("it is a device") != std::string::npos);
  CHECK(YamlDocument::load(folder.write("a.yaml", "a: 5")).root().require("a").as_integer() == 5);
}

TEST_CASE("nesting is bounded, so that no file exhausts the stack", "[yaml]") {
  CHECK(error_of_text("a: " + nested(63)).empty());
  CHECK(error_of_text("a: " + nested(64)) == "f.yaml:1:67: error: nested deeper than 64 levels; flatten the file");
  CHECK(error_of_text(nested(100000)).find("nested deeper") != std::string::npos);
  CHECK(error_of_text(std::string(200000, '[')).find("nested deeper") != std::string::npos);
  std::string flow, block;
  for (int i = 0; i < 10000; ++i) flow += "{a: ", block += "- ";
  CHECK(error_of_text(flow).find("nested deeper") != std::string::npos);
  CHECK(error_of_text(block).find("nested deeper") != std::string::npos);
}

TEST_CASE("control characters are refused where yaml-cpp would stop reading", "[yaml]") {
  CHECK(error_of_text(std::string("a: 1\nb: \x04\nc: 3")).find("f.yaml:2:4: error: control character 0x04") == 0);
  CHECK(error_of_text(std::string("a: \0b", 5)).find("control character 0x00") != std::string::npos);
  CHECK(error_of_text("a: 1\r\nb: \"x\ty\"\r\n").empty());
}

TEST_CASE("a reader's own complaints come with the others", "[yaml]") {
  const auto text = error_of([] {
    const auto document = parse("mode: fast\ncases:\n  - {m: 0}\n");
    document.root().require("cases").at(0).require("m").complain("no rows", "use 1 or more");
    document.root().complain_about_key("mode", "unknown mode 'fast'");
    document.root().keys();
    document.finish();
  });
  CHECK(text ==
        "f.yaml:1:1: error: unknown mode 'fast'\n"
        "f.yaml:3:9: error: 'cases[0].m': no rows; use 1 or more");
}
