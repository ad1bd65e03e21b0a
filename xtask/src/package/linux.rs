//! What the packages of Linux distributions have in common: where Cassandra's own put things.

use super::files::{self, Entry, PLAIN, PROGRAM, Programs};
use crate::machine::Outcome;

/// One line of what it is.
pub const SUMMARY: &str = "Apache Cassandra node without a JVM, and its nodetool";
pub const DESCRIPTION: &str = "Helenus speaks Cassandra's protocols and formats: it joins a ring \
    of Cassandra 5.0 or 4.1, forms one of its own, or runs alone.";
/// Whom to ask about it.
pub const MAINTAINER: &str = "The Helenus project <helenus@localhost>";
/// Folders of the node's data, as Cassandra's `cassandra.yaml` of packages has them.
const DATA: &str = "
# Where data is.
data_file_directories:
    - /var/lib/cassandra/data
commitlog_directory: /var/lib/cassandra/commitlog
hints_directory: /var/lib/cassandra/hints
saved_caches_directory: /var/lib/cassandra/saved_caches
cdc_raw_directory: /var/lib/cassandra/cdc_raw
";

/// All files; those below `etc/` are the operator's.
pub fn entries(programs: &Programs) -> Outcome<Vec<Entry>> {
    let script = |path: &str, name: &str| -> Outcome<Entry> {
        Ok(Entry::file(path, PROGRAM, files::packaged(name)?))
    };
    let plain = |path: &str, name: &str| -> Outcome<Entry> {
        Ok(Entry::file(path, PLAIN, files::packaged(name)?))
    };
    let mut entries = configuration("etc/cassandra")?;
    for mut entry in files::home(programs, "usr/share/cassandra")? {
        // programs are not the same on all machines, as what is in /usr/share has to be
        entry.path = entry.path.replace("usr/share/cassandra/lib/", "usr/lib/helenus/");
        entries.push(entry);
    }
    entries.extend([
        Entry::link("usr/share/cassandra/lib", "../../lib/helenus"),
        Entry::link("usr/bin/helenus", "../lib/helenus/helenus"),
        script("usr/sbin/cassandra", "bin/cassandra")?,
        script("usr/bin/nodetool", "bin/nodetool")?,
        plain("usr/share/cassandra/cassandra.in.sh", "linux/cassandra.in.sh")?,
        plain("usr/lib/systemd/system/helenus.service", "linux/helenus.service")?,
        // whoever stops or starts `cassandra` means this one, be it enabled or not
        Entry::link("usr/lib/systemd/system/cassandra.service", "helenus.service"),
        plain("etc/default/cassandra", "linux/default")?,
        plain("etc/security/limits.d/cassandra.conf", "linux/limits.conf")?,
        plain("etc/sysctl.d/cassandra.conf", "linux/sysctl.conf")?,
        Entry::folder_of_node("var/lib/cassandra"),
        Entry::folder_of_node("var/log/cassandra"),
    ]);
    Ok(entries)
}

/// The configuration of a node whose data is below `/var/lib/cassandra`.
pub fn configuration(folder: &str) -> Outcome<Vec<Entry>> {
    let mut entries = files::configuration(folder)?;
    for entry in entries.iter_mut().filter(|entry| entry.path.ends_with("/cassandra.yaml")) {
        let text = String::from_utf8(entry.bytes().to_vec())?;
        let of_data = |part: &&str| !part.starts_with("# Where data is.");
        let parts: Vec<&str> = text.split("\n\n").filter(of_data).collect();
        let text = parts.join("\n\n") + DATA;
        *entry = Entry::file(entry.path.clone(), PLAIN, text);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::configuration;

    #[test]
    fn the_configuration_says_once_where_data_is() {
        let entries = configuration("etc").unwrap();
        let yaml = entries.iter().find(|entry| entry.path == "etc/cassandra.yaml").unwrap();
        let text = String::from_utf8(yaml.bytes().to_vec()).unwrap();
        assert_eq!(text.matches("\ncommitlog_directory: /var/lib/cassandra/").count(), 1);
        assert_eq!(text.matches("data_file_directories").count(), 1);
    }
}
