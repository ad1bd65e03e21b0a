//! What manifests say that a crate is built with.

/// Names under `[dependencies]`, of any target; tests may use more.
pub fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[dependencies]"
                || (line.starts_with("[target.") && line.ends_with(".dependencies]"));
        } else if inside && let Some((name, _)) = line.split_once(['=', '.']) {
            names.push(name.trim().to_owned());
        }
    }
    names
}

/// The name by which Rust knows a package.
pub fn crate_name(package: &str) -> String {
    match package {
        "md-5" => "md5".to_owned(),
        _ => package.replace('-', "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::dependencies;

    #[test]
    fn reads_the_dependencies_of_a_manifest() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\ntypes.workspace = true\n\
                        rows = { path = \"x\" }\n[dev-dependencies]\nsim.workspace = true\n\
                        [target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n";
        assert_eq!(dependencies(manifest), ["types", "rows", "libc"]);
    }
}
