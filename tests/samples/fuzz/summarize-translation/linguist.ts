<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en">
<context><name>Chart</name>
<message><source>Depth</source><translation>Tiefe</translation></message>
<message><source>Shoal</source><translation type="unfinished"></translation></message>
<message><source>Buoy</source><translation type="vanished">Boje</translation></message>
<message numerus="yes"><source>%n whales</source><translation><numerusform>%n Wal</numerusform><numerusform>%n Wale</numerusform></translation></message>
</context></TS>
