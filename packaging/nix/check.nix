# SPDX-License-Identifier: MIT
# default.nix with stand-ins for nixpkgs: that it is an expression, and what it asks for, with the
# flags that the hook of meson adds; that it says of each feature whether it is wanted, since the
# hook enables all others.
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
  asked = removeAttrs (import ./default.nix { inherit pkgs; }) [ "src" ];
  flags = [
    "-Dauto_features=${asked.mesonAutoFeatures or "enabled"}"
    "-Dwrap_mode=nodownload"
    "--buildtype=${asked.mesonBuildType or "plain"}"
  ] ++ asked.mesonFlags;
  features = map builtins.head (builtins.filter builtins.isList
    (builtins.split "option\\('([a-z]+)', type: 'feature'"
      (builtins.readFile ../../meson_options.txt)));
  named = feature: builtins.any (flag: builtins.elem flag flags)
    [ "-D${feature}=enabled" "-D${feature}=disabled" ];
  forgotten = builtins.filter (feature: !named feature) features;
in
  if features == [ ] || forgotten != [ ]
  then throw "mesonFlags say nothing of: ${toString forgotten}"
  else asked // { mesonFlags = flags; }
