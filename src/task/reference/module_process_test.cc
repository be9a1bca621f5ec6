// SPDX-License-Identifier: Apache-2.0
// What a task's file can do to the machine: real Python with real PyTorch in the real sandbox.
#include "task/reference/module_process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/text.h"
#include "task/reference/module_testing.h"
#include "task/reference/python.h"

namespace kernelpro {
namespace {

constexpr const char* kSecret = "swordfish-of-the-test";

// A file whose get_inputs() runs these statements.
std::string running(const std::string& statements) {
  return "import os, socket, subprocess, sys\nimport torch\nimport torch.nn as nn\n"
         "class Model(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
         "def get_inputs():\n    " +
         replace_all(statements, "\n", "\n    ") +
         "\n    return [torch.rand(64, 64)]\n"
         "def get_init_inputs():\n    return []\n";
}

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

class ModuleProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_python("")) GTEST_SKIP() << "PyTorch is not installed";
    ASSERT_TRUE(write_file(join(home_.path(), "secret"), kSecret));
  }
  // Why this file is refused, by `module` if given, else by a process of its own.
  static Error refusal(const std::string& source, const ReferenceSettings& settings) {
    auto module = ModuleReference::start(settings);
    EXPECT_TRUE(module) << module.error().text();
    return module ? refusal(source, **module) : Error();
  }
  static Error refusal(const std::string& source, ModuleReference& module) {
    const auto described = module.describe(source, "", {});
    EXPECT_FALSE(described);
    return described ? Error() : described.error();
  }
  static void expect_rule(const std::string& rule, const std::string& statements,
                          ModuleReference& module) {
    const Error error = refusal(running(statements), module);
    EXPECT_EQ(error.kind, ErrorKind::kTask);
    EXPECT_TRUE(contains(error.next, "rule " + rule + ":")) << statements << "\n" << error.text();
    EXPECT_FALSE(contains(error.text(), kSecret)) << error.text();
  }
  std::string in_home(const std::string& name) const {
    return "'" + join(home_.path(), name) + "'";
  }

  TempDir home_;  // some user's
};

TEST_F(ModuleProcessTest, BrokenRulesAreNamed) {
  const Variable secret("KERNELPRO_TEST_PASSPHRASE", kSecret);
  auto started = ModuleReference::start(cpu_settings());
  ASSERT_TRUE(started) << started.error().text();
  ModuleReference& module = **started;
  // Reading.
  expect_rule("files", "raise ValueError(open(" + in_home("secret") + ").read())", module);
  expect_rule("files", "open(os.path.expanduser('~/.ssh/id_ed25519'))", module);
  expect_rule("files", "open('/etc/shadow')", module);
  expect_rule("files", "raise ValueError(open(f'/proc/{os.getppid()}/environ').read())", module);
  // Writing.
  expect_rule("files", "open(" + in_home("new") + ", 'w').write('x')", module);
  expect_rule("files", "os.remove(" + in_home("secret") + ")", module);
  expect_rule("files", "os.mkdir('/tmp/kernelpro-test-of-rules')", module);
  EXPECT_TRUE(exists(join(home_.path(), "secret")));
  EXPECT_FALSE(exists(join(home_.path(), "new")));
  // The network.
  expect_rule("network", "socket.create_connection(('127.0.0.1', 22))", module);
  expect_rule("network", "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)", module);
  expect_rule("network",
              "import urllib.request\nurllib.request.urlopen('http://example.com/weights')",
              module);
  // Our environment, and other processes.
  expect_rule("environment", "print(os.environ['KERNELPRO_TEST_PASSPHRASE'])", module);
  expect_rule("processes", "os.kill(os.getppid(), 9)", module);
  const Error shown = refusal(running("raise ValueError(str(dict(os.environ)))"), module);
  EXPECT_TRUE(contains(shown.message, "PATH")) << shown.text();
  EXPECT_FALSE(contains(shown.text(), kSecret)) << shown.text();
  // A file's own mistakes are not blamed on the sandbox.
  EXPECT_EQ(refusal(running("open('no-such-file')"), module).next, "fix the file");
  EXPECT_EQ(refusal(running("{}['key']"), module).next, "fix the file");
}

TEST_F(ModuleProcessTest, TheScratchFolderIsRemoved) {
  auto module = ModuleReference::start(cpu_settings());
  ASSERT_TRUE(module) << module.error().text();
  const Error error = refusal(
      running("open('kept', 'w').write('x')\nraise ValueError('<' + os.getcwd() + '>')"), **module);
  const std::size_t from = error.message.rfind('<') + 1;
  const std::string folder = error.message.substr(from, error.message.rfind('>') - from);
  EXPECT_TRUE(exists(join(folder, "kept"))) << error.text();
  module->reset();
  EXPECT_FALSE(exists(folder)) << folder;
}

TEST_F(ModuleProcessTest, EndlessLoopsEnd) {
  ReferenceSettings settings = cpu_settings();
  settings.timeout_s = 2;
  const Error error = refusal(running("while True:\n    pass"), settings);
  EXPECT_TRUE(contains(error.message, "needed more than 2 s")) << error.text();
  EXPECT_TRUE(contains(error.next, "KERNELPRO_MODULE_SECONDS")) << error.text();
  const Variable seconds("KERNELPRO_MODULE_SECONDS", "soon");
  const auto refused = ModuleReference::start(settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadInput);
}

TEST_F(ModuleProcessTest, EndlessForksEnd) {
  const Error error = refusal(
      running("while True:\n    subprocess.Popen(['sleep', '1000'], start_new_session=True)"),
      cpu_settings());
  EXPECT_TRUE(contains(error.message, "too many processes")) << error.text();
  EXPECT_TRUE(contains(error.next, "starts processes")) << error.text();
}

TEST_F(ModuleProcessTest, MemoryOfForksAndSessionsCounts) {
  ReferenceSettings settings = cpu_settings();
  settings.memory_bytes = 2LL << 30;
  const Error error = refusal(running("for i in range(40):\n"
                                      "    if os.fork() == 0:\n"
                                      "        os.setsid()\n"
                                      "        if os.fork() == 0:\n"
                                      "            kept = b'x' * (200 << 20)\n"
                                      "            import time; time.sleep(1000)\n"
                                      "        os._exit(0)\n"
                                      "import time; time.sleep(1000)"),
                              settings);
  EXPECT_EQ(error.kind, ErrorKind::kBadInput);
  EXPECT_TRUE(contains(error.message, "of memory and was ended")) << error.text();
  EXPECT_TRUE(contains(error.next, "KERNELPRO_MODULE_MEMORY")) << error.text();
}

TEST_F(ModuleProcessTest, HonestFilesWork) {
  // Beside the file: a helper to import and weights to load.
  const TempDir folder;
  ASSERT_TRUE(write_file(join(folder.path(), "kernelpro_test_helper.py"), "SCALE = 3.0\n"));
  ASSERT_TRUE(write_file(join(folder.path(), "weights.txt"), "4.5"));
  ReferenceSettings settings = cpu_settings();
  settings.folder = folder.path();
  settings.memory_bytes = 3LL << 30;
  const Variable more("KERNELPRO_MODULE_READ", join(home_.path(), "secret"));
  auto module = ModuleReference::start(settings);
  ASSERT_TRUE(module) << module.error().text();
  const std::string source =
      "import os, tempfile\nimport torch\nimport torch.nn as nn\n"
      "from kernelpro_test_helper import SCALE\n"
      "class Model(nn.Module):\n"
      "    def __init__(self, bias):\n"
      "        super().__init__()\n"
      "        self.table = bytearray(400 << 20)\n"  // large, and really there
      "        self.bias = bias\n"
      "    def forward(self, x):\n"
      "        with tempfile.TemporaryFile() as file:\n"
      "            file.write(b'x')\n"
      "        return x * SCALE + self.bias\n"
      "def get_inputs():\n    return [torch.rand(64, 64)]\n"
      "def get_init_inputs():\n"
      "    assert open(" +
      in_home("secret") +
      ").read()\n"
      "    return [float(open(os.path.join(os.path.dirname(__file__), 'weights.txt')).read())]\n";
  const auto described = (*module)->describe(source, join(folder.path(), "model.py"), {});
  ASSERT_TRUE(described) << described.error().text();
  Task task = task_of(*described, source);
  task.module->path = join(folder.path(), "model.py");
  const Case& c = task.cases[0];
  const TestSet set(task, c);
  ASSERT_TRUE((*module)->attach(task, c, 0, set.buffers()));
  ASSERT_TRUE((*module)->draw(c, 0, 7, DrawKind::kGiven));
  const auto computed = (*module)->compute(c, 0, Numerics::kFloat64, false);
  ASSERT_TRUE(computed) << computed.error().text();
  const std::vector<float> x = set.values<float>("x");
  const std::vector<double> out = set.values<double>("out");
  EXPECT_NEAR(out[5], 3.0 * static_cast<double>(x[5]) + 4.5, 1e-6);
}

TEST_F(ModuleProcessTest, AFileInAHomeFolderCannotReadTheRest) {
  const Variable home("HOME", home_.path());
  ReferenceSettings settings = cpu_settings();
  settings.folder = home_.path();
  auto module = ModuleReference::start(settings);
  ASSERT_TRUE(module) << module.error().text();
  expect_rule("files", "raise ValueError(open(" + in_home("secret") + ").read())", **module);
}

}  // namespace
}  // namespace kernelpro
