//! Is there space for what a compaction writes?
//! (`Directories.hasDiskSpaceForCompactionsAndStreams`)
//!
//! A compaction leaves the space that the operator reserves (`min_free_space_per_drive`). A task
//! that does not fit does without its largest inputs.

use std::rc::Rc;
use std::sync::Arc;

use super::running::RunningCompactions;
use super::work::{Task, Work};
use crate::disk_event::{DiskEvent, DiskFailure};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::node_tables::NodeTables;
use crate::options::DiskSettings;
use crate::sstables::SSTable;
use crate::strategies::Split;

/// What compactions may take of a disk with so many bytes free.
fn usable(settings: &DiskSettings, free: u64) -> u64 {
    let above = free.saturating_sub(settings.min_free_bytes);
    (above as f64 * settings.compaction_share) as u64
}

/// What is to be written, and has been taken in hand already, against what there is, a disk each.
fn fits(settings: &DiskSettings, bytes: u64, under_way: u64, disks: &[(u64, u64)]) -> bool {
    let share = (bytes + under_way) / disks.len().max(1) as u64;
    disks.iter().all(|disk| {
        // directories that say the same are taken for one disk
        let alike = disks.iter().filter(|other| *other == disk).count() as u64;
        share * alike <= usable(settings, disk.1)
    })
}

/// The task with fewer inputs, where there is no space for all of them: without the largest. None
/// if there is.
///
/// # Errors
/// If there is not enough for two, or for a task that is not to be made smaller.
pub(super) async fn reduce<'a>(
    (tables, running): (&NodeTables, &RunningCompactions),
    engine: &Rc<Engine>,
    task: &Task<'a>,
) -> Result<Option<Task<'a>>, StorageError> {
    let settings = &engine.options.disk;
    let places = tables.places_of(engine, &task.of.table).await?;
    let mut disks = Vec::new();
    for place in &places {
        let space = engine.env().disk_space(place).await;
        disks.push(space.map_err(|e| StorageError::io("cannot stat", place, e))?);
    }
    let running = running.all();
    let left = running.iter().filter(|running| running.kind != "Verify");
    let under_way: u64 =
        left.map(|running| running.total.saturating_sub(running.written.get())).sum();
    let bytes = |inputs: &[Arc<SSTable>]| -> u64 {
        inputs.iter().map(|input| input.table.data_length).sum()
    };
    let mut inputs = task.inputs.clone();
    inputs.sort_by_key(|input| input.table.data_length);
    let is_reducible = matches!(task.work, Work::Merge) && task.choice.split == Split::None;
    while !fits(settings, bytes(&inputs), under_way, &disks) {
        if !is_reducible || inputs.len() <= 2 {
            let Some(path) = places.into_iter().next() else { return Ok(None) };
            // Cassandra's words
            let what = format!(
                "Not enough space for compaction of {}.{}, estimated sstables = {}, expected write size = {}",
                task.of.table.keyspace,
                task.of.table.name,
                inputs.len(),
                bytes(&inputs)
            );
            let error = StorageError::Refused { path, what };
            let what = error.to_string();
            engine.tell_disk(&DiskEvent { failure: DiskFailure::NoRoom, what, is_last: false });
            return Err(error);
        }
        inputs.pop();
    }
    if inputs.len() == task.inputs.len() {
        return Ok(None);
    }
    engine.env().mark("compaction.reduced");
    let mut choice = task.choice.clone();
    choice.inputs = inputs.iter().map(|input| input.number).collect();
    Ok(Some(Task { of: task.of.clone(), choice, inputs, work: task.work }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_and_what_is_under_way_count() {
        let settings =
            DiskSettings { min_free_bytes: 50, compaction_share: 0.5, ..DiskSettings::default() };
        assert_eq!((usable(&settings, 40), usable(&settings, 150)), (0, 50));
        let one = [(1000, 150)];
        assert!(fits(&settings, 50, 0, &one) && !fits(&settings, 51, 0, &one));
        assert!(!fits(&settings, 50, 1, &one));
        // two disks share it, two directories of one disk do not
        assert!(fits(&settings, 100, 0, &[(1000, 150), (2000, 150)]));
        assert!(!fits(&settings, 52, 0, &[(1000, 150), (1000, 150)]));
    }
}
