//! What the environment says: `CASSANDRA_CONF`, `CASSANDRA_LOG_DIR`, `MAX_HEAP_SIZE`, and the JVM
//! properties `-Dcassandra.*` of `JVM_OPTS` and `JVM_EXTRA_OPTS`, which tests and charts set. Names
//! and meanings are those of `bin/cassandra` and of class `CassandraRelevantProperties`.
//!
//! Pure: whoever starts the node reads the variables and hands them over.

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::Result;

/// The variables that are looked at.
pub const VARIABLES: [&str; 5] = [CONF, OPTIONS, EXTRA_OPTIONS, HEAP, LOGS];
const CONF: &str = "CASSANDRA_CONF";
const OPTIONS: &str = "JVM_OPTS";
const EXTRA_OPTIONS: &str = "JVM_EXTRA_OPTS";
const HEAP: &str = "MAX_HEAP_SIZE";
const LOGS: &str = "CASSANDRA_LOG_DIR";

/// The name of the file in the folder of `CASSANDRA_CONF`.
const FILE: &str = "cassandra.yaml";
const PROPERTY: &str = "-Dcassandra.";
/// Keys of the configuration as properties, which Cassandra reads where this property is true.
const SETTINGS: &str = "settings.";
const ALLOWS_SETTINGS: &str = "config.allow_system_properties";
/// More than that of a variable is not looked at.
const OPTIONS_BYTES_MAX: usize = 128 << 10;
const MIB: u64 = 1 << 20;

/// Properties that are a key here, with what stands behind the number.
const KEYS: &[(&str, &str, &str)] = &[
    ("allocate_tokens_for_keyspace", "allocate_tokens_for_keyspace", ""),
    ("auth_bcrypt_gensalt_log2_rounds", "auth_bcrypt_gensalt_log2_rounds", ""),
    ("auto_bootstrap", "auto_bootstrap", ""),
    ("autocompaction_on_startup_enabled", "autocompaction_on_startup_enabled", ""),
    ("available_processors", "available_processors", ""),
    ("cluster_name", "cluster_name", ""),
    ("commitlog.ignorereplayerrors", "commitlog_ignore_replay_errors", ""),
    ("consistent.rangemovement", "consistent_rangemovement", ""),
    ("join_ring", "join_ring", ""),
    ("native_transport_port", "native_transport_port", ""),
    ("partitioner", "partitioner", ""),
    ("replace_address", "replace_address", ""),
    ("replace_address_first_boot", "replace_address_first_boot", ""),
    ("ring_delay_ms", "ring_delay", "ms"),
    ("role_password_update_min_interval_in_ms", "role_password_update_min_interval", "ms"),
    ("ssl_storage_port", "ssl_storage_port", ""),
    ("start_native_transport", "start_native_transport", ""),
    ("storage_port", "storage_port", ""),
    ("storagedir", "data_dir", ""),
    ("write_survey", "write_survey", ""),
];

/// Properties that ask for what is so anyway, or concern a JVM: nothing is said about them.
const NEEDLESS: &[&str] = &[
    ALLOWS_SETTINGS,
    "boot_without_jna",
    "jmx.local.port",
    "jmx.remote.port",
    "libjemalloc",
    "native.epoll.enabled",
    "skip_wait_for_gossip_to_settle",
    "superuser_setup_delay_ms",
];

/// What the environment says of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The configuration's file: `-Dcassandra.config`, or the one in the folder of
    /// `CASSANDRA_CONF`.
    pub file: Option<PathBuf>,
    /// Settings over those of the file, each as `key=value`.
    pub settings: Vec<String>,
    /// `MAX_HEAP_SIZE` as a setting, for a node without `memory_budget`.
    pub memory: Option<String>,
    /// `-Dcassandra.logdir`, or `CASSANDRA_LOG_DIR`: the folder of log files.
    pub log_directory: Option<PathBuf>,
    /// What the operator should know, a line each.
    pub warnings: Vec<String>,
}

impl Environment {
    /// Reads it, by the value of a variable.
    ///
    /// # Errors
    /// If a value makes no sense, in one line.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> std::result::Result<Self, String> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let folder = set(CONF).map(PathBuf::from);
        let mut properties = Vec::new();
        for name in [OPTIONS, EXTRA_OPTIONS] {
            for word in words(&set(name).unwrap_or_default()) {
                let Some(property) = word.strip_prefix(PROPERTY) else { continue };
                let (name, value) = property.split_once('=').unwrap_or((property, ""));
                // as in a JVM, the last one counts
                properties.retain(|(other, _)| other != name);
                properties.push((name.to_owned(), value.to_owned()));
            }
        }
        let file = folder.as_deref().map(|folder| folder.join(FILE));
        let log_directory = set(LOGS).map(PathBuf::from);
        let mut environment = Self { file, log_directory, ..Self::default() };
        environment.take(&properties, folder.as_deref())?;
        environment.memory = set(HEAP).map(|text| memory(&text)).transpose()?;
        Ok(environment)
    }

    fn take(
        &mut self,
        properties: &[(String, String)],
        folder: Option<&Path>,
    ) -> std::result::Result<(), String> {
        let is = |(name, value): &(String, String)| name == ALLOWS_SETTINGS && value == "true";
        let allows = properties.iter().any(is);
        let mut unknown = Vec::new();
        for (name, value) in properties {
            if let Some((_, key, unit)) = KEYS.iter().find(|(known, ..)| known == name) {
                // Cassandra takes an empty value for none
                if !value.is_empty() {
                    self.settings.push(format!("{key}={value}{unit}"));
                }
                continue;
            }
            match name.as_str() {
                "config" => self.file = Some(file(value, folder)?),
                "logdir" => self.log_directory = Some(PathBuf::from(value)),
                "initial_token" if !value.is_empty() => {
                    let count = value.split(',').filter(|word| !word.trim().is_empty()).count();
                    self.settings.push(format!("initial_token={value}"));
                    self.settings.push(format!("num_tokens={count}"));
                }
                known if NEEDLESS.contains(&known) => {}
                setting if allows && setting.starts_with(SETTINGS) => {
                    let key = setting.trim_start_matches(SETTINGS);
                    self.settings.push(format!("{key}={value}"));
                }
                other => unknown.push(format!("cassandra.{other}")),
            }
        }
        match unknown.as_slice() {
            [] => {}
            [one] => self.warnings.push(format!("the JVM property {one} has no effect here")),
            more => {
                let more = more.join(", ");
                self.warnings.push(format!("the JVM properties {more} have no effect here"));
            }
        }
        Ok(())
    }

    /// Sets what it says over a file's configuration, and then the operator's own `settings`;
    /// `MAX_HEAP_SIZE` and the folder of log files only where nothing else says them.
    ///
    /// # Errors
    /// If it comes to nothing that a node can be started with.
    pub fn apply(self, config: &mut Config, settings: Vec<String>) -> Result<()> {
        let mut all = self.settings;
        all.extend(settings);
        config.set_all(all.iter().map(String::as_str))?;
        if let Some(memory) = self.memory.filter(|_| !config.is_set("memory_budget")) {
            config.set(&memory)?;
            all.push(memory);
        }
        let logs = self.log_directory.filter(|_| !config.is_set("log_directory"));
        if let Some(directory) = logs {
            let setting = format!("log_directory={}", directory.display());
            config.set(&setting)?;
            all.push(setting);
        }
        config.given.overrides = all;
        config.given.warnings.extend(self.warnings);
        Ok(())
    }
}

/// Words of a shell's line, without their quotes.
fn words(text: &str) -> Vec<String> {
    let end = text.floor_char_boundary(OPTIONS_BYTES_MAX);
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.get(..end).unwrap_or_default().chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, _) if c.is_whitespace() => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            }
            _ => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// `-Dcassandra.config`: a URL of a file, a path, or the name of a file in the folder.
fn file(value: &str, folder: Option<&Path>) -> std::result::Result<PathBuf, String> {
    if let Some(path) = value.strip_prefix("file:") {
        // file:/path and file:///path
        let path = path.strip_prefix("//").unwrap_or(path);
        return Ok(PathBuf::from(path));
    }
    if value.is_empty() || value.contains("://") {
        return Err(format!(
            "cannot read the configuration of -Dcassandra.config={value}: only files are \
             supported, as file:///path"
        ));
    }
    let path = Path::new(value);
    Ok(folder.filter(|_| path.is_relative()).map_or(path.to_owned(), |folder| folder.join(path)))
}

/// `4G`, `512M`, `8388608k` or bytes, as the JVM reads `-Xmx`, in whole MiB.
fn memory(text: &str) -> std::result::Result<String, String> {
    let text = text.trim();
    let (number, scale) = match text.strip_suffix(|c: char| c.is_ascii_alphabetic()) {
        None => (text, 1),
        Some(number) => {
            let unit = text.chars().next_back().map(|c| c.to_ascii_lowercase());
            let scale = match unit {
                Some('t') => 1 << 40,
                Some('g') => 1 << 30,
                Some('m') => MIB,
                Some('k') => 1 << 10,
                _ => 0,
            };
            (number, scale)
        }
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(scale));
    match bytes.map(|bytes| bytes / MIB) {
        Some(mib) if mib > 0 => Ok(format!("memory_budget={mib}MiB")),
        _ => Err(format!("{HEAP}: {text:?} is not a size such as 4G or 512M")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> std::result::Result<Environment, String> {
        Environment::read(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_environment_says_nothing() {
        assert_eq!(read(&[]).unwrap(), Environment::default());
        let empty = [(CONF, ""), (OPTIONS, " "), (HEAP, "")];
        assert_eq!(read(&empty).unwrap(), Environment::default());
    }

    #[test]
    fn properties_become_settings() {
        let options = "-Xms1G -Dcassandra.ring_delay_ms=5000 -Dcassandra.join_ring=false \
                       '-Dcassandra.initial_token=1, 2,3' -Dcassandra.logdir=/var/log/c \
                       -Dcassandra.replace_address_first_boot=10.0.0.1 \
                       -Dcassandra.skip_wait_for_gossip_to_settle=0 \
                       -Dcassandra.superuser_setup_delay_ms=0 -Dcassandra.storagedir=/d \
                       -Dcassandra.consistent.rangemovement=false \
                       -Dcassandra.load_ring_state=false";
        let more = "-Dcassandra.allow_unsafe_join=true -Dcassandra.join_ring=true";
        let environment = read(&[(OPTIONS, options), (EXTRA_OPTIONS, more)]).unwrap();
        assert_eq!(
            environment.settings,
            [
                "ring_delay=5000ms",
                "initial_token=1, 2,3",
                "num_tokens=3",
                "replace_address_first_boot=10.0.0.1",
                "data_dir=/d",
                "consistent_rangemovement=false",
                "join_ring=true",
            ]
        );
        assert_eq!(environment.log_directory, Some(PathBuf::from("/var/log/c")));
        assert_eq!(
            environment.warnings,
            ["the JVM properties cassandra.load_ring_state, cassandra.allow_unsafe_join have no \
              effect here"]
        );
        let mut config = Config::default();
        environment.apply(&mut config, vec!["ring_delay=1s".to_owned()]).unwrap();
        assert_eq!(config.initial_tokens, [1, 2, 3]);
        assert_eq!((config.num_tokens, config.ring_delay.as_secs()), (3, 1));
        assert!(!config.joining.is_consistent && config.joining.at_start);
        assert_eq!(config.lookup().word("log_directory"), "/var/log/c");
        assert_eq!(config.given.overrides.len(), 9);
        assert_eq!(config.given.warnings.len(), 1);
    }

    #[test]
    fn the_folder_of_logs_is_the_propertys_or_the_variables() {
        let of = |options: &str, variable: &str, own: &str| {
            let environment = read(&[(OPTIONS, options), (LOGS, variable)]).unwrap();
            let mut config = Config::from_yaml(own).unwrap();
            environment.apply(&mut config, Vec::new()).unwrap();
            config.lookup().word("log_directory")
        };
        assert_eq!(of("", "/a", ""), "/a");
        assert_eq!(of("-Dcassandra.logdir=/b", "/a", ""), "/b");
        assert_eq!(of("-Dcassandra.logdir=/b", "/a", "log_directory: /c"), "/c");
    }

    #[test]
    fn keys_as_properties_need_leave() {
        let options = "-Dcassandra.settings.num_tokens=4";
        let environment = read(&[(OPTIONS, options)]).unwrap();
        assert!(environment.settings.is_empty() && environment.warnings.len() == 1);
        let leave = "-Dcassandra.config.allow_system_properties=true";
        let environment = read(&[(OPTIONS, options), (EXTRA_OPTIONS, leave)]).unwrap();
        assert_eq!(environment.settings, ["num_tokens=4"]);
    }

    #[test]
    fn the_file_is_the_propertys_or_stands_in_the_folder() {
        let of = |options: &str, folder: &str| {
            read(&[(OPTIONS, options), (CONF, folder)]).map(|environment| environment.file)
        };
        let path = |text: &str| Ok(Some(PathBuf::from(text)));
        assert_eq!(of("", "/etc/cassandra"), path("/etc/cassandra/cassandra.yaml"));
        assert_eq!(of("-Dcassandra.config=file:///a/b.yaml", "/etc"), path("/a/b.yaml"));
        assert_eq!(of("-Dcassandra.config=file:/a/b.yaml", ""), path("/a/b.yaml"));
        assert_eq!(of("-Dcassandra.config=/a/b.yaml", "/etc"), path("/a/b.yaml"));
        assert_eq!(of("-Dcassandra.config=b.yaml", "/etc"), path("/etc/b.yaml"));
        assert!(of("-Dcassandra.config=http://a/b.yaml", "/etc").is_err());
    }

    #[test]
    fn the_heap_is_the_memory_unless_that_is_set() {
        let budget = |text: &str| {
            let mut config = Config::default();
            read(&[(HEAP, text)])?.apply(&mut config, Vec::new()).unwrap();
            Ok::<_, String>(config.memory())
        };
        assert_eq!(budget("4G"), Ok(4 << 30));
        assert_eq!(budget("512M"), Ok(512 << 20));
        assert_eq!(budget("262144k"), Ok(256 << 20));
        assert_eq!(budget("1073741824"), Ok(1 << 30));
        for bad in ["4X", "G", "0", "12k", "-1G", "99999999999T", "4 G"] {
            assert!(budget(bad).unwrap_err().contains(bad), "{bad}");
        }
        let mut config = Config::from_yaml("memory_budget: 300MiB").unwrap();
        read(&[(HEAP, "4G")]).unwrap().apply(&mut config, Vec::new()).unwrap();
        assert_eq!(config.memory(), 300 << 20);
        let mut config = Config::default();
        let set = vec!["memory_budget=200MiB".to_owned()];
        read(&[(HEAP, "4G")]).unwrap().apply(&mut config, set).unwrap();
        assert_eq!((config.memory(), config.given.overrides.len()), (200 << 20, 1));
    }

    #[test]
    fn properties_lead_to_keys_of_the_table() {
        let index = crate::table::Index::new();
        for (property, key, _) in KEYS {
            assert!(index.get(key).is_some(), "{property}");
        }
    }
}
