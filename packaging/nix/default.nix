# SPDX-License-Identifier: MIT
# nix-build packaging/nix; with other packages: --arg pkgs 'import ... { }'.
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "flexguard";
  version = builtins.head (builtins.match ".*\n  version: '([0-9.]+)'.*"
    (builtins.readFile ../../meson.build));
  src = pkgs.lib.cleanSource ../..;

  # The eBPF programs want a clang that knows nothing of Nix's hardening flags.
  nativeBuildInputs = [
    pkgs.meson
    pkgs.ninja
    pkgs.pkg-config
    pkgs.python3
    pkgs.scdoc
    pkgs.bpftools
    pkgs.llvmPackages.clang-unwrapped
    pkgs.llvmPackages.llvm
  ];
  buildInputs = [
    pkgs.libbpf
    pkgs.elfutils
    pkgs.zlib
    pkgs.ncurses
    pkgs.libmicrohttpd
  ];
  # The hook of meson says --buildtype=plain and -Dauto_features=enabled, unless it is told: each
  # feature is named here, also those that are for benchmarks on libraries that are not above.
  mesonBuildType = "release";
  mesonFlags = [
    "-Dtests=false"
    "-Dmonitor=enabled"
    "-Dncurses=enabled"
    "-Dmicrohttpd=enabled"
    "-Dlibdw=enabled"
    "-Dleveldb=disabled"
    "-Dtdb=disabled"
  ];
  # Loaded when they are asked for, so that no DT_NEEDED names them.
  postFixup = ''
    patchelf --add-rpath ${pkgs.lib.makeLibraryPath [ pkgs.elfutils pkgs.ncurses pkgs.libmicrohttpd ]} \
      $out/bin/flexguard
  '';
  # pthread names stand in for glibc's by their versions: no other C library.
  meta = {
    description = "Locks that know whether the critical path is on a CPU";
    license = with pkgs.lib.licenses; [ mit gpl2Only bsd2 ];
    platforms = [ "x86_64-linux" "aarch64-linux" ];
    mainProgram = "flexguard";
  };
}
