//! `cassandra.yaml`, and overrides of it.

/// A file; its last line is an override too.
pub fn yaml(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(mut config) = config::Config::from_yaml(text) {
        config.entries();
        let _ = config.set(text.lines().last().unwrap_or_default());
    }
}
