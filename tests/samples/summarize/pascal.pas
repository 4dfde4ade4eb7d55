{ Moves boats by oars. It knows nothing of sails. }
{ Copyright 1994 Ada Björk }
unit Boats;

{$mode objfpc}{$I settings.inc}

interface

uses
  SysUtils, Classes,
  Oars in 'oars.pas';

type
  TKind = (Rowing, Sailing);
  TBoat = class(TPersistent)
    procedure Row(Strokes: Integer); // rows
    function Floats: Boolean;
  end;
  PBoat = ^TBoat;

implementation

(* procedure NotThis; *)
procedure TBoat.Row(Strokes: Integer);
begin
  WriteLn('procedure NorThis;');
end;

function TBoat.Floats: Boolean;
begin
  Result := True;
end;

end.
