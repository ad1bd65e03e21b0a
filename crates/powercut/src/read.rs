//! Reading everything back.

use std::collections::BTreeSet;
use std::path::Path;

use crate::client::Row;
use crate::history::{Key, Seen};
use crate::load::{int, pad};
use crate::node::Place;

fn text(cell: Option<&Option<Vec<u8>>>) -> String {
    let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn cell(row: &Row, at: usize) -> Option<&[u8]> {
    row.get(at).and_then(|cell| cell.as_deref())
}

/// Everything that a node shows: schema, scans of all tables, and each key that `keys` names by
/// itself.
///
/// # Errors
/// If it cannot be read, or a row is not whole, or the ways of reading differ.
pub fn everything<'a>(
    place: &Place,
    keys: impl IntoIterator<Item = &'a Key>,
) -> Result<Seen, String> {
    let mut client = place.connect().map_err(|e| e.to_string())?;
    let mut seen = Seen::default();
    let columns = client
        .query(
            "SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = 'ks'",
        )
        .map_err(|e| e.to_string())?;
    let tables = client
        .query("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks'")
        .map_err(|e| e.to_string())?;
    for row in &tables {
        seen.tables.insert(text(row.first()), BTreeSet::new());
    }
    for row in &columns {
        match seen.tables.get_mut(&text(row.first())) {
            Some(columns) => drop(columns.insert(text(row.get(1)))),
            None => return Err(format!("a column without its table: {}", text(row.first()))),
        }
    }
    for (table, columns) in &seen.tables {
        let wanted = ["k", "v", "pad"];
        if let Some(missing) = wanted.iter().find(|name| !columns.contains(**name)) {
            return Err(format!("table {table} has no column {missing}"));
        }
        let rows = client.query(&format!("SELECT k, v, pad FROM ks.{table}"));
        for row in rows.map_err(|e| e.to_string())? {
            let (Some(key), Some(value)) = (int(cell(&row, 0)), int(cell(&row, 1))) else {
                return Err(format!("a row of {table} is not whole: {row:?}"));
            };
            if text(row.get(2)) != pad(key, value) {
                return Err(format!("row {key} of {table} has another value's filling"));
            }
            if seen.keys.insert((table.clone(), key), value).is_some() {
                return Err(format!("row {key} of {table} came twice"));
            }
        }
    }
    let known: Vec<&Key> =
        keys.into_iter().filter(|key| seen.tables.contains_key(&key.0)).collect();
    let select = |key: &&Key| format!("SELECT v FROM ks.{} WHERE k = {}", key.0, key.1);
    let texts: Vec<String> = known.iter().map(select).collect();
    let answers = client.queries(&texts).map_err(|e| e.to_string())?;
    for (key, rows) in known.into_iter().zip(answers) {
        let value = rows.first().and_then(|row| int(cell(row, 0)));
        if value != seen.keys.get(key).copied() {
            let scanned = seen.keys.get(key);
            return Err(format!("{key:?} alone is {value:?}, in a scan {scanned:?}"));
        }
    }
    Ok(seen)
}

/// What is written together must show together: tables of one mutation in all modes, a logged batch
/// where its parts are synced before they are acknowledged.
///
/// # Errors
/// If one part is there without the other.
pub fn together(seen: &Seen, logged: bool) -> Result<(), String> {
    for ((table, key), value) in &seen.keys {
        let other = match table.as_str() {
            "p" => ("q".to_owned(), *key),
            "q" => ("p".to_owned(), *key),
            "l" if logged => ("l".to_owned(), key ^ 1),
            _ => continue,
        };
        let found = seen.keys.get(&other);
        if found != Some(value) {
            return Err(format!(
                "half of a batch: ({table}, {key}) is {value}, {other:?} {found:?}"
            ));
        }
    }
    Ok(())
}

/// How many whole snapshots of the table that is truncated are there.
///
/// # Errors
/// If the directories cannot be read.
pub fn snapshots(place: &Place) -> Result<usize, String> {
    let data = place.data_dir().join("data").join("ks");
    let mut found = 0;
    for table in entries(&data)? {
        let name = table.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("tr-") {
            continue;
        }
        for snapshot in entries(&table.join("snapshots"))? {
            found += usize::from(is_whole(&snapshot)?);
        }
    }
    Ok(found)
}

fn entries(directory: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", directory.display());
    match std::fs::read_dir(directory) {
        Ok(entries) => entries.map(|e| e.map(|e| e.path()).map_err(failed)).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

/// Does each table of contents in a snapshot name files that are there, and are its manifest and
/// its schema complete?
fn is_whole(snapshot: &Path) -> Result<bool, String> {
    let text = |name: &str| match std::fs::read(snapshot.join(name)) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{}: {error}", snapshot.join(name).display())),
    };
    let (manifest, schema) = (text("manifest.json")?, text("schema.cql")?);
    if !(manifest.starts_with('{') && manifest.ends_with('}')) {
        return Ok(false);
    }
    if !(schema.starts_with("CREATE TABLE IF NOT EXISTS ks.tr (") && schema.ends_with(";\n")) {
        return Ok(false);
    }
    let mut any = false;
    for file in entries(snapshot)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix("TOC.txt") else { continue };
        let contents = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
        let there = |component: &str| {
            let metadata = std::fs::metadata(snapshot.join(format!("{stem}{component}")));
            metadata.is_ok_and(|metadata| metadata.len() > 0)
        };
        let named = manifest.contains(&format!("\"{stem}Data.db\""));
        if !named || contents.is_empty() || !contents.lines().all(there) {
            return Ok(false);
        }
        any = true;
    }
    Ok(any)
}
