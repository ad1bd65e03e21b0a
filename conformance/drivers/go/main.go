// The common driver scenario with the unmodified Go driver: scenario HOST PORT [SLOW_HOST].
//
// Both hosts fail a read over more than a thousand tombstones; SLOW_HOST acknowledges no write and ends no long read
// before it times out.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"gopkg.in/inf.v0"
)

const ks = "drv_go"

func ok(name string) { fmt.Println("ok " + name) }

func check(condition bool, format string, args ...any) {
	if !condition {
		fmt.Fprintf(os.Stderr, "failed: "+format+"\n", args...)
		os.Exit(1)
	}
}

func must(err error) { check(err == nil, "%v", err) }

type scenario struct {
	s       *gocql.Session
	version int
}

func connect(host string, port, version int) *gocql.Session {
	c := gocql.NewCluster(host)
	c.Port = port
	if version != 0 {
		c.ProtoVersion = version
	}
	c.Consistency = gocql.One
	c.Timeout = 30 * time.Second
	c.ConnectTimeout = 20 * time.Second
	c.NumConns = 1
	c.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 0}
	s, err := c.CreateSession()
	must(err)
	return s
}

func (x *scenario) run(cql string, args ...any) { must(x.s.Query(cql, args...).Exec()) }

func (x *scenario) schemaMetadata() {
	x.run("DROP KEYSPACE IF EXISTS " + ks)
	x.run("CREATE KEYSPACE " + ks + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	x.run("CREATE TYPE " + ks + ".address (street text, zip int)")
	x.run("CREATE TABLE " + ks + ".shape (k1 int, k2 text, c1 timeuuid, c2 int, s text static, a frozen<address>, " +
		"v map<text, frozen<set<int>>>, PRIMARY KEY ((k1, k2), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)")
	must(x.s.AwaitSchemaAgreement(context.Background()))
	m := x.metadata(x.s, "shape")
	t := m.Tables["shape"]
	check(len(t.PartitionKey) == 2 && t.PartitionKey[1].Name == "k2", "partition key")
	check(len(t.ClusteringColumns) == 2 && t.ClusteringColumns[0].Order == gocql.DESC, "clustering")
	check(t.Columns["s"].Kind == gocql.ColumnStatic, "static column")
	check(m.UserTypes["address"] != nil && len(m.UserTypes["address"].FieldNames) == 2, "type")
	ok("schema_metadata")
}

// metadata waits until an event has brought the table to the driver's own copy of the schema.
func (x *scenario) metadata(s *gocql.Session, table string) *gocql.KeyspaceMetadata {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		m, err := s.KeyspaceMetadata(ks)
		if err == nil && m.Tables[table] != nil {
			return m
		}
		check(time.Now().Before(end), "table %s did not reach the metadata: %v", table, err)
	}
}

func (x *scenario) prepared() {
	x.run("CREATE TABLE " + ks + ".p (k int, c int, v text, PRIMARY KEY (k, c))")
	for c := 0; c < 100; c++ {
		x.run("INSERT INTO "+ks+".p (k, c, v) VALUES (?, ?, ?)", 1, c, fmt.Sprintf("v%d", c))
	}
	iter := x.s.Query("SELECT v FROM "+ks+".p WHERE k = ? AND c >= ?", 1, 97).Iter()
	var v string
	var got []string
	for iter.Scan(&v) {
		got = append(got, v)
	}
	must(iter.Close())
	check(strings.Join(got, " ") == "v97 v98 v99", "rows %v", got)
	row := map[string]any{}
	must(x.s.Query("SELECT * FROM "+ks+".p WHERE k = ? AND c = ?", 1, 99).MapScan(row))
	x.run("ALTER TABLE " + ks + ".p ADD later int")
	row = map[string]any{}
	must(x.s.Query("SELECT * FROM "+ks+".p WHERE k = ? AND c = ?", 1, 99).MapScan(row))
	check(row["v"] == "v99", "row after ALTER: %v", row)
	ok("prepared")
}

func (x *scenario) paging() {
	x.run("CREATE TABLE " + ks + ".pages (k int, c int, v int, PRIMARY KEY (k, c))")
	failed := make(chan error, 8)
	for w := 0; w < 8; w++ {
		go func(w int) {
			for n := w; n < 10000; n += 8 {
				if err := x.s.Query("INSERT INTO "+ks+".pages (k, c, v) VALUES (?, ?, ?)", n%7, n, n*2).Exec(); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}(w)
	}
	for w := 0; w < 8; w++ {
		must(<-failed)
	}
	seen, pages := 0, 0
	var state []byte
	for {
		iter := x.s.Query("SELECT k, c, v FROM " + ks + ".pages").PageSize(100).PageState(state).Iter()
		state = iter.PageState()
		var k, c, v int
		for n := iter.NumRows(); n > 0 && iter.Scan(&k, &c, &v); n-- {
			check(v == c*2, "value")
			seen++
		}
		must(iter.Close())
		pages++
		if len(state) == 0 {
			break
		}
	}
	check(seen == 10000, "%d rows", seen)
	check(pages == 100 || pages == 101, "%d pages", pages)
	var count int
	must(x.s.Query("SELECT count(*) FROM " + ks + ".pages").Scan(&count))
	check(count == 10000, "count %d", count)
	ok("paging")
}

func (x *scenario) batches() {
	x.run("CREATE TABLE " + ks + ".b (k int PRIMARY KEY, v int)")
	x.run("CREATE TABLE " + ks + ".counts (k int PRIMARY KEY, n counter)")
	for mark, kind := range []gocql.BatchType{gocql.LoggedBatch, gocql.UnloggedBatch} {
		b := x.s.Batch(kind)
		for k := 0; k < 10; k++ {
			b.Query("INSERT INTO "+ks+".b (k, v) VALUES (?, ?)", k, mark)
		}
		b.Query("INSERT INTO " + ks + ".b (k, v) VALUES (99, 99)")
		must(b.Exec())
		iter := x.s.Query("SELECT v FROM " + ks + ".b").Iter()
		var v, found int
		for iter.Scan(&v) {
			if v == mark {
				found++
			}
		}
		must(iter.Close())
		check(found == 10, "%d rows of a batch", found)
	}
	b := x.s.Batch(gocql.CounterBatch)
	for n := 1; n < 5; n++ {
		b.Query("UPDATE "+ks+".counts SET n = n + ? WHERE k = ?", int64(n), 1)
	}
	must(b.Exec())
	var n int64
	must(x.s.Query("SELECT n FROM " + ks + ".counts WHERE k = 1").Scan(&n))
	check(n == 10, "counter %d", n)
	ok("batches")
}

type address struct {
	Street string `cql:"street"`
	Zip    int    `cql:"zip"`
}

func uuid(text string) gocql.UUID {
	u, err := gocql.ParseUUID(text)
	must(err)
	return u
}

func (x *scenario) types() {
	big200 := new(big.Int).Lsh(big.NewInt(1), 200)
	columns := []struct {
		column string
		values []any
	}{
		{"a ascii", []any{"x", ""}},
		{"b bigint", []any{int64(0), int64(math.MaxInt64), int64(math.MinInt64)}},
		{"c blob", []any{[]byte{0, 255}, bytes.Repeat([]byte{7}, 100000)}},
		{"d boolean", []any{true, false}},
		{"e date", []any{time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{"f decimal", []any{*inf.NewDec(0, 0), *inf.NewDec(-150, 2), *inf.NewDecBig(big200, 5)}},
		{"g double", []any{0.0, -1.5, math.Inf(1), math.MaxFloat64, math.SmallestNonzeroFloat64}},
		{"h duration", []any{gocql.Duration{}, gocql.Duration{Months: 1, Days: 2, Nanoseconds: 3}, gocql.Duration{Months: -1, Days: -2, Nanoseconds: math.MinInt64 + 1}}},
		{"i float", []any{float32(0), float32(1.5), float32(math.MaxFloat32)}},
		{"j inet", []any{net.ParseIP("127.0.0.1").To4(), net.ParseIP("2001:db8::ff00:42:8329")}},
		{"k1 int", []any{0, math.MaxInt32, math.MinInt32}},
		{"l smallint", []any{int16(0), int16(math.MaxInt16), int16(math.MinInt16)}},
		{"m text", []any{"", "caf\u00e9 \u4e2d \U0001f600", strings.Repeat("x", 100000)}},
		{"n time", []any{time.Duration(0), time.Duration(86399999999999)}},
		{"o timestamp", []any{time.UnixMilli(0).UTC(), time.Date(2020, 2, 29, 12, 34, 56, 789000000, time.UTC)}},
		{"p timeuuid", []any{uuid("de3e12ba-e5f0-11f1-a71b-15da588fdeae")}},
		{"q tinyint", []any{int8(0), int8(127), int8(-128)}},
		{"r uuid", []any{uuid("00000000-0000-0000-0000-000000000000"), uuid("6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47")}},
		{"t varint", []any{*big.NewInt(0), *big.NewInt(-129), *new(big.Int).Neg(big200)}},
		{"u list<int>", []any{[]int{1, 2, 3}, []int{5, 5}}},
		{"v set<text>", []any{[]string{"", "a", "z"}}},
		{"w map<text, int>", []any{map[string]int{"a": 1, "b": -1}}},
		{"x frozen<" + ks + ".address>", []any{address{"s", 1}}},
		{"z vector<float, 3>", []any{[]float32{1, -2.5, 0}}},
	}
	var names []string
	for _, c := range columns {
		names = append(names, c.column)
	}
	x.run("CREATE TABLE " + ks + ".types (k int PRIMARY KEY, y tuple<int, text, boolean>, " + strings.Join(names, ", ") + ")")
	for _, c := range columns {
		name := strings.Fields(c.column)[0]
		insert := "INSERT INTO " + ks + ".types (k, " + name + ") VALUES (?, ?)"
		for _, v := range c.values {
			x.run(insert, 1, v)
			got := reflect.New(reflect.TypeOf(v))
			must(x.s.Query("SELECT "+name+" FROM "+ks+".types WHERE k = ?", 1).Scan(got.Interface()))
			check(same(got.Elem().Interface(), v), "%s: got %v, want %v", c.column, got.Elem().Interface(), v)
		}
		x.run(insert, 1, gocql.UnsetValue)
		check(!x.isNull(name), "%s: unset erased the value", c.column)
		if strings.Contains(c.column, "address") {
			continue // the driver takes no nil for a UDT
		}
		x.run(insert, 1, nil)
		check(x.isNull(name), "%s: null", c.column)
	}
	x.run("INSERT INTO "+ks+".types (k, y) VALUES (?, (?, ?, ?))", 1, 1, "a", true)
	var a int
	var b string
	var c bool
	must(x.s.Query("SELECT y FROM "+ks+".types WHERE k = 1").Scan(&a, &b, &c))
	check(a == 1 && b == "a" && c, "tuple")
	ok("types")
}

// raw is a value as it is on the wire: null, empty or more.
type raw struct{ bytes []byte }

func (r raw) MarshalCQL(gocql.TypeInfo) ([]byte, error) { return r.bytes, nil }

func (r *raw) UnmarshalCQL(_ gocql.TypeInfo, data []byte) error {
	r.bytes = data
	return nil
}

// emptyValues: the value of no bytes, of every type that has one, is neither null nor lost; empty collections are.
func (x *scenario) emptyValues() {
	scalars := []string{"ascii", "bigint", "blob", "boolean", "decimal", "double", "float", "inet", "int", "text", "timestamp", "timeuuid", "uuid", "varint"}
	columns := ""
	for _, t := range scalars {
		columns += t + "_ " + t + ", "
	}
	x.run("CREATE TABLE " + ks + ".empties (k int PRIMARY KEY, " + columns + "l list<int>, fl frozen<list<int>>, fm frozen<map<int, int>>, " +
		"a frozen<" + ks + ".address>)")
	for _, t := range scalars {
		x.run("INSERT INTO "+ks+".empties (k, "+t+"_) VALUES (?, ?)", 1, raw{[]byte{}})
		var r raw
		must(x.s.Query("SELECT " + t + "_ FROM " + ks + ".empties WHERE k = 1").Scan(&r))
		check(r.bytes != nil && len(r.bytes) == 0, "empty %s: %v", t, r.bytes)
		if t != "decimal" { // the driver's own reading of it fails
			must(x.s.Query("SELECT " + t + "_ FROM " + ks + ".empties WHERE k = 1").MapScan(map[string]any{}))
		}
	}
	x.run("INSERT INTO "+ks+".empties (k, l, fl, fm, a) VALUES (?, ?, ?, ?, {street: null})", 3, []int{}, []int{}, map[int]int{})
	var l, fl, fm, a raw
	must(x.s.Query("SELECT l, fl, fm, a FROM "+ks+".empties WHERE k = ?", 3).Scan(&l, &fl, &fm, &a))
	check(l.bytes == nil, "empty list")
	check(bytes.Equal(fl.bytes, make([]byte, 4)) && bytes.Equal(fm.bytes, make([]byte, 4)), "empty frozen collections")
	check(bytes.HasPrefix(a.bytes, []byte{255, 255, 255, 255}), "a type with a null field: %v", a.bytes)
	ok("empty_values")
}

// isNull asks the server, so that the driver's own treatment of null and empty is out of it.
func (x *scenario) isNull(column string) bool {
	var text *string
	must(x.s.Query("SELECT toJson("+column+") FROM "+ks+".types WHERE k = ?", 1).Scan(&text))
	return text == nil || *text == "null"
}

func same(a, b any) bool {
	switch want := b.(type) {
	case inf.Dec:
		got := a.(inf.Dec)
		return got.Cmp(&want) == 0 && got.Scale() == want.Scale()
	case big.Int:
		got := a.(big.Int)
		return got.Cmp(&want) == 0
	case time.Time:
		return a.(time.Time).Equal(want)
	case net.IP:
		return a.(net.IP).Equal(want)
	}
	return reflect.DeepEqual(a, b)
}

func (x *scenario) fails(code int, cql string) error {
	err := x.s.Query(cql).Exec()
	check(err != nil, "%s did not fail", cql)
	var r gocql.RequestError
	check(errors.As(err, &r), "%s: %v", cql, err)
	check(r.Code() == code, "%s: code %x, %v", cql, r.Code(), err)
	return err
}

func (x *scenario) errors() {
	x.fails(gocql.ErrCodeSyntax, "SELEKT * FROM x")
	x.fails(gocql.ErrCodeInvalid, "SELECT nosuch FROM "+ks+".b")
	x.fails(gocql.ErrCodeInvalid, "SELECT * FROM "+ks+".nosuch")
	err := x.fails(gocql.ErrCodeAlreadyExists, "CREATE TABLE "+ks+".b (k int PRIMARY KEY)")
	var exists *gocql.RequestErrAlreadyExists
	check(errors.As(err, &exists) && exists.Keyspace == ks && exists.Table == "b", "what exists: %v", err)
	x.fails(gocql.ErrCodeConfig, "CREATE KEYSPACE drv_bad WITH replication = {'class': 'NoSuch'}")
	x.fails(gocql.ErrCodeConfig, "CREATE TABLE "+ks+".bad (k int PRIMARY KEY) WITH gc_grace_seconds = -1")
	x.run("DROP KEYSPACE IF EXISTS drv_go3")
	x.run("CREATE KEYSPACE drv_go3 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
	x.run("CREATE TABLE drv_go3.t (k int PRIMARY KEY, v int)")
	for _, cql := range []string{"INSERT INTO drv_go3.t (k, v) VALUES (1, 1)", "SELECT * FROM drv_go3.t WHERE k = 1"} {
		err := x.s.Query(cql).Consistency(gocql.Three).Exec()
		var u *gocql.RequestErrUnavailable
		check(errors.As(err, &u) && u.Required == 3 && u.Alive == 1 && u.Consistency == gocql.Three, "unavailable: %v", err)
	}
	x.run("DROP KEYSPACE drv_go3")
	x.fails(gocql.ErrCodeAlreadyExists, "CREATE KEYSPACE "+ks+" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	x.fails(gocql.ErrCodeUnauthorized, "DROP TABLE system.local")
	ok("errors")
}

// tombstones: a read over too many of them warns, and one over far too many fails.
func (x *scenario) tombstones() {
	x.run("CREATE TABLE " + ks + ".graves (k int, c int, v int, PRIMARY KEY (k, c))")
	for k, count := range map[int]int{1: 200, 2: 1200} {
		for c := 0; c < count; c++ {
			x.run("DELETE FROM "+ks+".graves WHERE k = ? AND c = ?", k, c)
		}
	}
	iter := x.s.Query("SELECT * FROM " + ks + ".graves WHERE k = 1").Iter()
	warnings := strings.Join(iter.Warnings(), "; ")
	must(iter.Close())
	check(strings.Contains(warnings, "200 tombstone cells"), "warnings: %s", warnings)
	err := x.s.Query("SELECT * FROM " + ks + ".graves WHERE k = 2").Exec()
	var f *gocql.RequestErrReadFailure
	check(errors.As(err, &f) && f.Received == 0 && f.BlockFor == 1, "read failure: %v", err)
	if x.version == 5 {
		check(len(f.ErrorMap) == 1, "failures: %v", f.ErrorMap)
		for _, reason := range f.ErrorMap {
			check(reason == 1, "reason %d", reason)
		}
	} else {
		check(f.NumFailures == 1, "failures: %d", f.NumFailures)
	}
	ok("tombstones")
}

// timeouts: the slow server writes, and says so too late.
func timeouts(host string, port int) {
	x := &scenario{s: connect(host, port, 5), version: 5}
	defer x.s.Close()
	x.run("CREATE KEYSPACE " + ks + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	x.run("CREATE TABLE " + ks + ".t (k int PRIMARY KEY, v text)")
	value := strings.Repeat("\\", 20000)
	failures := make(chan error, 1000)
	for k := 0; k < cap(failures); k++ {
		go func() { failures <- x.s.Query("INSERT INTO "+ks+".t (k, v) VALUES (?, ?)", k, value).Exec() }()
	}
	late := 0
	for k := 0; k < cap(failures); k++ {
		if err := <-failures; err != nil { // in time if it came right before the log was synced
			var w *gocql.RequestErrWriteTimeout
			check(errors.As(err, &w) && w.Received == 0 && w.BlockFor == 1 && w.WriteType == "SIMPLE", "write timeout: %v", err)
			late++
		}
	}
	check(late > 0, "all writes in time")
	err := x.s.Query("SELECT count(" + strings.Repeat("toJson(", 5) + "v" + strings.Repeat(")", 5) + ") FROM " + ks + ".t").Exec()
	var r *gocql.RequestErrReadTimeout
	check(errors.As(err, &r) && r.Received == 0 && r.BlockFor == 1, "read timeout: %v", err)
	var k int
	must(x.s.Query("SELECT k FROM " + ks + ".t WHERE k = 7").Scan(&k))
	x.run("DROP KEYSPACE " + ks)
	ok("timeouts")
}

func (x *scenario) unprepared() {
	x.run("CREATE TABLE " + ks + ".again (k int PRIMARY KEY, v int)")
	x.run("INSERT INTO "+ks+".again (k, v) VALUES (?, ?)", 1, 1)
	x.run("DROP TABLE " + ks + ".again")
	x.run("CREATE TABLE " + ks + ".again (k int PRIMARY KEY, v int)")
	x.run("INSERT INTO "+ks+".again (k, v) VALUES (?, ?)", 2, 2)
	var n int
	must(x.s.Query("SELECT count(*) FROM " + ks + ".again").Scan(&n))
	check(n == 1, "rows")
	ok("unprepared")
}

// events: the watcher's cached metadata changes because an event says so.
func (x *scenario) events(host string, port int) {
	const announced = "drv_announced"
	watcher := connect(host, port, x.version)
	defer watcher.Close()
	type metadata = gocql.KeyspaceMetadata
	x.run("DROP KEYSPACE IF EXISTS " + announced)
	changes := []struct {
		cql  string
		seen func(*metadata) bool
	}{
		{"CREATE KEYSPACE drv_announced WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", func(m *metadata) bool { return m != nil }},
		{"CREATE TABLE drv_announced.t (k int PRIMARY KEY)", func(m *metadata) bool { return m.Tables["t"] != nil }},
		{"ALTER TABLE drv_announced.t ADD v int", func(m *metadata) bool { return m.Tables["t"].Columns["v"] != nil }},
		{"CREATE TYPE drv_announced.u (a int)", func(m *metadata) bool { return m.UserTypes["u"] != nil }},
		{"ALTER TYPE drv_announced.u ADD b int", func(m *metadata) bool { return len(m.UserTypes["u"].FieldNames) == 2 }},
		{"DROP TYPE drv_announced.u", func(m *metadata) bool { return m.UserTypes["u"] == nil }},
		{"DROP TABLE drv_announced.t", func(m *metadata) bool { return m.Tables["t"] == nil }},
		{"ALTER KEYSPACE drv_announced WITH durable_writes = false", func(m *metadata) bool { return !m.DurableWrites }},
		{"DROP KEYSPACE drv_announced", func(m *metadata) bool { return m == nil }},
	}
	for _, change := range changes {
		x.run(change.cql)
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			m, err := watcher.KeyspaceMetadata(announced)
			if err != nil {
				m = nil
			}
			if change.seen(m) {
				break
			}
			check(time.Now().Before(end), "no event for %s: %v", change.cql, err)
		}
	}
	ok("events")
}

func main() {
	host := os.Args[1]
	port, err := strconv.Atoi(os.Args[2])
	must(err)
	negotiated := connect(host, port, 0)
	negotiated.Close()
	ok("negotiation")
	for _, version := range []int{5, 4} {
		x := &scenario{s: connect(host, port, version), version: version}
		x.schemaMetadata()
		x.prepared()
		x.paging()
		x.batches()
		x.types()
		x.emptyValues()
		x.errors()
		x.tombstones()
		x.unprepared()
		x.events(host, port)
		x.run("DROP KEYSPACE " + ks)
		x.s.Close()
		ok(fmt.Sprintf("protocol v%d", version))
	}
	if len(os.Args) > 3 {
		timeouts(os.Args[3], port)
	}
}
