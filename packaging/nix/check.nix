# SPDX-License-Identifier: MIT
# default.nix with stand-ins for nixpkgs: that it is an expression, and what it asks for.
# nix-instantiate --eval --strict --json packaging/nix/check.nix
let
  names = [ "meson" "ninja" "pkg-config" "python3" "scdoc" "bpftools" "libbpf" "elfutils" "zlib"
    "ncurses" "libmicrohttpd" ];
  pkgs = builtins.listToAttrs (map (name: { inherit name; value = name; }) names) // {
    stdenv.mkDerivation = arguments: arguments;
    llvmPackages = { clang-unwrapped = "clang-unwrapped"; llvm = "llvm"; };
    lib = {
      cleanSource = path: toString path;
      makeLibraryPath = builtins.concatStringsSep ":";
      licenses = { mit = "mit"; gpl2Only = "gpl2Only"; bsd2 = "bsd2"; };
    };
  };
in removeAttrs (import ./default.nix { inherit pkgs; }) [ "src" ]
