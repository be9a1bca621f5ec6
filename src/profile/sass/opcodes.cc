// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/opcodes.h"

#include <algorithm>
#include <unordered_map>

#include "profile/sass/program.h"

namespace kernelpro {

namespace {

using Table = std::unordered_map<std::string_view, Op>;

Table make_table() {
  Table table;
  const auto add = [&](Op op, std::initializer_list<std::string_view> roots) {
    for (const std::string_view root : roots) table[root] = op;
  };
  add(Op::kTensor, {"HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"});
  add(Op::kWarpgroup, {"HGMMA", "IGMMA", "QGMMA", "BGMMA"});
  add(Op::kFp32, {"FFMA", "FADD", "FMUL", "FFMA2", "FADD2", "FMUL2", "FFMA32I", "FADD32I",
                  "FMUL32I", "FSWZADD", "UFADD", "UFMUL", "UFFMA"});
  add(Op::kHalf, {"HFMA2", "HADD2", "HMUL2", "HFMA2_32I", "HADD2_32I", "HMUL2_32I"});
  add(Op::kFp64, {"DFMA", "DADD", "DMUL", "DSETP", "DMNMX", "DSET"});
  add(Op::kSpecial, {"MUFU"});
  add(Op::kConvert, {"I2F", "F2I", "F2F", "FRND", "I2I", "UI2F", "UF2I", "UF2F", "UFRND"});
  add(Op::kPack, {"F2FP", "I2FP", "I2IP", "F2IP", "UI2FP", "UF2FP", "UI2IP"});
  add(Op::kInteger,
      {"IADD3",     "IADD",    "IMAD",    "LEA",     "SHF",      "SHL",       "SHR",      "LOP3",
       "LOP",       "PRMT",    "ISETP",   "IMNMX",   "IMNMX3",   "VIMNMX",    "VIMNMX3",  "VIADD",
       "VIADDMNMX", "SEL",     "BMSK",    "SGXT",    "IABS",     "IDP",       "IDP4A",    "XMAD",
       "IADD32I",   "LOP32I",  "IMUL",    "IMUL32I", "ISCADD",   "ISCADD32I", "IMAD32I",  "POPC",
       "FLO",       "BREV",    "BFE",     "BFI",     "VABSDIFF", "VABSDIFF4", "ISAD",     "VHMNMX",
       "UIADD3",    "UIADD",   "UIMAD",   "ULEA",    "USHF",     "USHL",      "USHR",     "ULOP3",
       "ULOP",      "ULOP32I", "UISETP",  "USEL",    "UPRMT",    "UIMNMX",    "UVIMNMX",  "UBMSK",
       "USGXT",     "UIABS",   "UPOPC",   "UFLO",    "UBREV",    "UVIADD",    "UVIMNMX3", "SGXT",
       "IADD2",     "UIADD2",  "UIADD3X", "VIADD2",  "MEMSET",   "ISET"});
  add(Op::kSelect, {"FMNMX",  "FMNMX3", "FSETP",  "FSEL",    "FSET",   "FCHK",   "FCMP",
                    "HMNMX2", "HSETP2", "HSET2",  "PSETP",   "PLOP3",  "UPLOP3", "UPSETP",
                    "UFSETP", "UFSEL",  "UFMNMX", "VHMNMX2", "HMNMX3", "USETP",  "UFSET"});
  add(Op::kMove, {"MOV", "MOV32I", "UMOV", "R2UR", "P2R", "R2P", "UP2UR", "UR2UP", "MOVM",
                  "UMOV32I", "R2UP", "UR2R", "PR2R", "UP2R", "CS2UR"});
  add(Op::kGlobalLoad, {"LDG", "LD", "LDGMC"});
  add(Op::kGlobalStore, {"STG", "ST"});
  add(Op::kGlobalAtomic, {"ATOM", "ATOMG", "RED", "REDG", "REDAS"});
  add(Op::kSharedLoad, {"LDS"});
  add(Op::kMatrixLoad, {"LDSM"});
  add(Op::kSharedStore, {"STS", "STSM", "STAS"});
  add(Op::kSharedAtomic, {"ATOMS", "REDS"});
  add(Op::kLocalLoad, {"LDL"});
  add(Op::kLocalStore, {"STL"});
  add(Op::kConstantLoad, {"LDC", "ULDC", "LDCU"});
  add(Op::kTexture, {"TEX", "TLD", "TLD4", "TXD", "TXQ", "TMML", "TEXS", "TLDS", "TLD4S", "SULD",
                     "SUST", "SUATOM", "SURED", "SUQUERY", "FOOTPRINT", "PIXLD", "AL2P", "IPA"});
  add(Op::kAsyncCopy, {"LDGSTS"});
  add(Op::kBulkCopy, {"UBLKCP", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMALST"});
  add(Op::kTensorMemory,
      {"LDTM", "STTM", "LDT", "STT", "UTCCP", "UTCSHIFT", "UTCATOMSWS", "LDTMS", "STTMS"});
  add(Op::kBarrier, {"BAR", "B2R", "R2B"});
  add(Op::kMbarrier, {"SYNCS", "UTCBAR", "ARRIVES"});
  add(Op::kClusterBarrier, {"UCGABAR_ARV", "UCGABAR_WAIT", "UCGABAR_GET", "UCGABAR_SET"});
  add(Op::kFence, {"MEMBAR", "FENCE", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "CCTLT", "UCCTL"});
  add(Op::kShuffle, {"SHFL"});
  add(Op::kVote, {"VOTE", "VOTEU", "MATCH", "REDUX", "CREDUX", "UREDUX"});
  add(Op::kCount, {"S2R", "S2UR", "CS2R", "GETLMEMBASE", "SETLMEMBASE", "LEPC", "ULEPC", "QSPC"});
  add(Op::kBranch, {"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "BREAK", "BRAU"});
  add(Op::kCall, {"CALL", "JCAL", "RET"});
  add(Op::kExit, {"EXIT", "KILL", "BPT"});
  add(Op::kConverge, {"BSSY", "BSYNC", "WARPSYNC", "WARPGROUP", "WARPGROUPSET", "BMOV", "YIELD",
                      "BREAK", "SSY", "SYNC"});
  add(Op::kOther, {"NOP",
                   "NANOSLEEP",
                   "DEPBAR",
                   "LDGDEPBAR",
                   "ELECT",
                   "USETMAXREG",
                   "PMTRIG",
                   "ACQBULK",
                   "PREEXIT",
                   "ACQSHMINIT",
                   "UTMACCTL",
                   "UTMAPF",
                   "UTMACMDFLUSH",
                   "UBLKPF",
                   "USETSHMSZ",
                   "UGETNEXTWORKID",
                   "CSMTEST",
                   "RTT",
                   "VOTEU_VTG",
                   "OUT",
                   "SETCTAID",
                   "STP",
                   "TTUCCTL",
                   "TTUGO",
                   "TTULD",
                   "TTULD_CLOSE",
                   "TTUMACRO",
                   "TTUST",
                   "TTUOPEN",
                   "TTUCLOSE",
                   "UCLEA",
                   "UVIRTCOUNT",
                   "SUCLAMP",
                   "SPSET",
                   "WARPGROUP_ARRIVE",
                   "LDTRAM",
                   "UMEMSETS",
                   "ENDCOLLECTIVE",
                   "SETLMEM",
                   "UGETNEXTWORKID"});
  return table;
}

bool is_fp64_name(std::string_view modifier) { return modifier == "F64"; }

}  // namespace

Op op_of(std::string_view root) {
  static const Table table = make_table();
  const auto found = table.find(root);
  if (found != table.end()) return found->second;
  // UTCHMMA, UTCIMMA, UTCQMMA, UTCOMMA and their successors.
  if (root.starts_with("UTC") && root.ends_with("MMA")) return Op::kWarpgroup;
  return Op::kUnknown;
}

bool is_variable_latency(Op op) {
  switch (op) {
    case Op::kSpecial:
    case Op::kConvert:
    case Op::kGlobalLoad:
    case Op::kGlobalAtomic:
    case Op::kSharedLoad:
    case Op::kMatrixLoad:
    case Op::kSharedAtomic:
    case Op::kLocalLoad:
    case Op::kConstantLoad:
    case Op::kTexture:
    case Op::kTensorMemory:
    case Op::kShuffle:
    case Op::kVote:
    case Op::kCount:
      return true;
    default:
      return false;
  }
}

bool is_fp64_conversion(const SassInstruction& i) {
  return i.op == Op::kConvert && std::any_of(i.modifiers.begin(), i.modifiers.end(), is_fp64_name);
}

bool touches_fp64(const SassInstruction& i) {
  return i.op == Op::kFp64 || i.root == "DMMA" || is_fp64_conversion(i);
}

int access_bits(const SassInstruction& i) {
  for (const std::string& m : i.modifiers) {
    if (m == "128") return 128;
    if (m == "256") return 256;
    if (m == "64") return 64;
    if (m == "U8" || m == "S8" || m == "8") return 8;
    if (m == "U16" || m == "S16" || m == "16") return 16;
    if (m == "96") return 96;
  }
  return 32;
}

int typical_latency(const SassInstruction& i) {
  // Without a scoreboard, the latency is fixed and short: ULDC, CS2R.
  if (i.control.known && i.control.written_by >= 6 && is_variable_latency(i.op)) return 6;
  switch (i.op) {
    case Op::kGlobalLoad:
    case Op::kTexture:
      return 600;
    case Op::kGlobalAtomic:
      return 700;
    case Op::kLocalLoad:
      return 35;
    case Op::kSharedLoad:
      return 29;
    case Op::kMatrixLoad:
      return 33;
    case Op::kSharedAtomic:
      return 60;
    case Op::kConstantLoad:
      return 30;
    case Op::kTensorMemory:
      return 40;
    case Op::kSpecial:
      return 20;
    case Op::kConvert:
      return 16;
    case Op::kShuffle:
      return 24;
    case Op::kVote:
      return 14;
    case Op::kCount:
      return 20;
    case Op::kTensor:
      return 33;
    case Op::kWarpgroup:
      return 128;
    // GPUs with few fp64 units signal fp64 results by a scoreboard.
    case Op::kFp64:
      return i.control.written_by < 6 ? 48 : 8;
    case Op::kHalf:
      return 5;
    case Op::kSelect:
      return i.root == "FCHK" ? 20 : 4;
    default:
      return i.has("WIDE") ? 5 : 4;
  }
}

}  // namespace kernelpro
