//! From the command line, the environment and files to the configuration of a node.

use std::net::IpAddr;
use std::path::Path;

use config::{Config, Environment, Network, OWN_FILE, Source};
use env::real;

use crate::Arguments;
use crate::cloud;

/// The file that says how the commit log is archived and restored, beside the configuration.
const ARCHIVING: &str = "commitlog_archiving.properties";

/// The text of a file beside the configuration, if it is there.
fn read(path: &Path) -> Result<Option<String>, String> {
    match read_text(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some).map_err(|error| format!("{}: {error}", path.display())),
    }
}

fn read_text(path: &Path) -> std::io::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "no shard runs yet")]
    std::fs::read_to_string(path)
}

/// What the environment says.
///
/// # Errors
/// If a variable makes no sense.
pub fn environment() -> Result<Environment, String> {
    #[expect(clippy::disallowed_methods, reason = "these variables are part of the configuration")]
    let variable = |name: &str| std::env::var(name).ok();
    Environment::read(variable)
}

/// Labels of metrics under k8ssandra's names, and the variables of the environment that give them,
/// as k8ssandra's operator sets them.
const METRIC_LABELS: &[(&str, &str)] = &[("pod_name", "POD_NAME"), ("node_name", "NODE_NAME")];

fn metric_labels() -> Vec<(&'static str, String)> {
    #[expect(clippy::disallowed_methods, reason = "k8ssandra's operator says it there")]
    let value = |variable: &str| std::env::var(variable).ok();
    METRIC_LABELS.iter().filter_map(|(label, of)| Some((*label, value(of)?))).collect()
}

/// The configuration of the files, with what the environment and the command line set over it.
///
/// # Errors
/// If no node can be started with it: all that is wrong, a line each.
pub fn configuration(arguments: &Arguments, environment: Environment) -> Result<Config, String> {
    let mut config = of_machine(arguments, environment)?;
    cloud::discover(&mut config)?;
    Ok(config)
}

/// The same, before anybody else is asked.
///
/// # Errors
/// If it makes no sense: all that is wrong, a line each.
pub fn of_machine(arguments: &Arguments, environment: Environment) -> Result<Config, String> {
    let file = arguments.config.clone().or_else(|| environment.file.clone());
    let mut config = match &file {
        None => Config::default(),
        Some(path) => of_files(path)?,
    };
    let settings = settings_of(arguments);
    environment.apply(&mut config, settings).map_err(|error| error.to_string())?;
    if let Some(path) = &file {
        // Cassandra looks for them where its yaml is
        let beside = |name| read(&path.with_file_name(name));
        config.beside.commitlog_archiving = beside(ARCHIVING)?.unwrap_or_default();
        config.beside.rack_dc = beside(ring::RackDc::FILE)?;
        config.beside.topology = beside(ring::Topology::FILE)?;
    }
    config.given.file = file;
    config.given.metric_labels = metric_labels();
    config.resolve(&Machine)?;
    Ok(config)
}

/// This machine and the resolver that it asks.
struct Machine;

impl Network for Machine {
    fn of_name(&self, name: &str) -> Option<IpAddr> {
        real::addresses_of(name).ok()?.first().copied()
    }

    fn of_interface(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut all = real::interfaces().ok()?;
        all.retain(|(interface, _)| interface == name);
        (!all.is_empty()).then(|| all.into_iter().map(|(_, address)| address).collect())
    }
}

/// `cassandra.yaml`, and Helenus' own file if it stands beside it.
fn of_files(path: &Path) -> Result<Config, String> {
    with_files(path, Config::from_files)?.map_err(|error| error.to_string())
}

/// What of these files has no effect, be they refused or not.
///
/// # Errors
/// If one cannot be read.
pub fn notes_of(path: &Path) -> Result<Vec<String>, String> {
    with_files(path, Config::notes_of_files)
}

fn with_files<T>(
    path: &Path,
    read_both: impl FnOnce(Source<'_>, Option<Source<'_>>) -> T,
) -> Result<T, String> {
    let own_path = path.with_file_name(OWN_FILE);
    let (name, own_name) = (path.display().to_string(), own_path.display().to_string());
    let text = read_text(path).map_err(|error| format!("{name}: {error}"))?;
    let own = read(&own_path)?;
    let own = own.as_deref().map(|text| Source { name: Some(&own_name), text });
    Ok(read_both(Source { name: Some(&name), text: &text }, own))
}

/// What the command line sets, each as `key=value`.
fn settings_of(arguments: &Arguments) -> Vec<String> {
    let mut settings = Vec::new();
    if let Some(directory) = &arguments.data_dir {
        settings.push(format!("data_dir={}", directory.display()));
    }
    if let Some(address) = &arguments.listen {
        settings.push(format!("listen_address={address}"));
        settings.push(format!("rpc_address={address}"));
    }
    let numbers = [
        ("native_transport_port", arguments.native_port.map(u32::from)),
        ("storage_port", arguments.storage_port.map(u32::from)),
        ("shards", arguments.shards),
    ];
    settings.extend(numbers.iter().filter_map(|(key, value)| value.map(|v| format!("{key}={v}"))));
    settings.extend(arguments.set.iter().cloned());
    settings
}
